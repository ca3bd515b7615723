"""The commands as a user sees them."""
