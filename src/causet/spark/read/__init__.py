"""Traces and logs as DataFrames: files, schemas, and the user's own columns."""
