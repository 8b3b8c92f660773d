"""A graph brought up to date: the difference of two graphs, and the patch."""
