"""Cuts of what all known readers have: waited for, told to a place, published there."""
