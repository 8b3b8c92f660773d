"""A client of SPARQL endpoints, its terms, and the folder of what it answered."""
