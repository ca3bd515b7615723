"""The words for what becomes of a message of a stream, and for what to do about a cause that does not come.

One list for all: `delivery`, the kernels, Spark, the books and the verdicts.
"""

HELD, DELIVERED, FLAGGED, LATE, DIVERTED = "held", "delivered", "flagged", "late", "diverted"
STATUSES = (HELD, DELIVERED, FLAGGED, LATE, DIVERTED)
"""In kernels a status is its position in this list."""
BEAT = "heartbeat"
"""The status of a heartbeat in a batch of `merge`."""

WAIT, FLAG, DIVERT = "wait", "flag", "divert"
POLICIES = (WAIT, FLAG, DIVERT)
"""In kernels a policy is its position in this list."""

READ, CONFLICTS, DUPLICATES, HEARTBEATS = "read", "conflicts", "duplicates", "heartbeats"
OUTCOMES = (DELIVERED, FLAGGED, LATE, DIVERTED, CONFLICTS, DUPLICATES, HEARTBEATS)
"""What can become of a row that is no longer held, as the books count it."""
CONTROL, SENT = "control", "sent"
"""Of the packets of a protocol: those that carry no message, and the messages that a process sent itself."""
COPIES, UNREAD = "copies", "unread"
"""Of messages to several readers, those beyond the first of each; and messages that have no reader."""
REFUSED = "refused"
"""The diverted rows that are not messages."""
SKIPPED = "skipped"
"""Messages that a topic had lost before they were read; no book counts them."""
