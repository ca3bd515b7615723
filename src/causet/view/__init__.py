"""Executions to look at: drawings for the terminal and for the browser."""
