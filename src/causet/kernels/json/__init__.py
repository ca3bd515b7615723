"""A kernel that vouches for lines of JSON."""
