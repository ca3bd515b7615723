"""Traces and logs, in and out."""
