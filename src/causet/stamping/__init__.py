"""What a stamper is made of: what a caller gives it, what it knows, and its file. Standard library only."""
