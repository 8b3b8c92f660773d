"""The knowledge graph: readers of graph files, the DuckDB store and its verbalisation."""
