"""Members of systems whose protocols come from papers: their packets are rows, their states Spark's."""
