"""Numba kernels over plain arrays: the hold-back idea for millions of events at a time."""
