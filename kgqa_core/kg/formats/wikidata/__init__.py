"""Readers of what Wikidata publishes: the JSON dump, by a compiled walker with a plain road beside it, and RDF."""
