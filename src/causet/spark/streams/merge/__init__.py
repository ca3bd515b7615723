"""The merge: one order for all subscribers, of a batch and of a stream; and what it takes, `tune`."""
