"""Several tables of one database as one graph, by a mapping that people can read and edit."""
