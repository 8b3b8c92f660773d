"""The neighbourhood of some entities out of a graph that is larger than memory."""
