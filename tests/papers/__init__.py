"""One paper at a time: figures, sections and errata."""
