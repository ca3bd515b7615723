"""README and documents: every command and snippet in them runs."""
