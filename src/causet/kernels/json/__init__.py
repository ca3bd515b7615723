"""JSON Lines, checked strictly and fast."""
