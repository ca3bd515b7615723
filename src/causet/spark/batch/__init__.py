"""What is asked of a whole log: order, verify, audit, explain, vectors."""
