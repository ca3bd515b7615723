"""ShiViz logs: lines with vector clocks, found by a regular expression of JavaScript."""
