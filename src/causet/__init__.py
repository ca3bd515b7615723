"""causet: cause before effect."""
