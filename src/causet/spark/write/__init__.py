"""A folder of rows, complete or not there."""
