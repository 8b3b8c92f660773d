"""Atlas: the bundled graph of countries, cities, languages and currencies, and its questions."""
