"""Processes that talk over a network."""
