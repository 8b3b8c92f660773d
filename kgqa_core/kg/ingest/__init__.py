"""From the statements of readers to the tables of a graph: integers, meaning, ids."""
