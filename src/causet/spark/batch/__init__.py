"""Questions about a whole log: order, verify, audit, explain, vectors."""
