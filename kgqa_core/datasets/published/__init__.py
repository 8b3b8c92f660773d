"""Question sets that others published, and Atlas."""
