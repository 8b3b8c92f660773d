"""Looking into a graph that was built, for people."""
