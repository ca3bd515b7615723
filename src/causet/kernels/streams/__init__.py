"""Kernels on the messages of a stream."""
