"""Kernels on the events of a log."""
