"""What one call may ask of a graph that is served."""

from __future__ import annotations

SECONDS = 10.0
"""Most time of a call."""
SCAN_SECONDS = 2.0
"""Most time that a search reads all names for, where the dictionary has none."""
LONGEST = 1000
"""Characters of a key, a name or a text that is searched for."""
LONGEST_FORM = 20_000
"""Characters of a logical form."""
MOST_SEARCHED, MOST_FACTS, MOST_SHOWN, MOST_PATHS, MOST_HOPS, MOST_ROWS = 100, 500, 500, 100, 3, 1000
"""Limits of what one call may ask for: entities searched, facts of a page, edges of a picture, relation paths and their
hops, answers of a form."""
