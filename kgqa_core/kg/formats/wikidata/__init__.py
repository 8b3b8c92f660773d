"""Readers of what Wikidata publishes: the JSON dump, by a compiled and a Python reader, and RDF."""
