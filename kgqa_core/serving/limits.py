"""Names and limits of a server, which its clients and its parts share; imports nothing."""

from __future__ import annotations

TOKEN_VARIABLE = "KGQA_SERVE_TOKEN"
"""The environment variable of the token that clients send as `Authorization: Bearer TOKEN`."""
SERVE_FOLDER, ADDRESS = "serve", "server.json"
"""Folder of a home in which its server keeps its address, in this file while it runs, and the feedback."""

SECONDS = 10.0
"""Most time of a call."""
SCAN_SECONDS = 2.0
"""Most time that a search reads all names for, where the dictionary has none."""
GRAPH_CALLS = 1
"""Calls that look into the graph at once: each takes of the time of the thread that answers questions."""
LONGEST = 1000
"""Characters of a key, a name or a text that is searched for."""
LONGEST_FORM = 20_000
"""Characters of a logical form."""
MOST_SEARCHED, MOST_FACTS, MOST_SHOWN, MOST_PATHS, MOST_HOPS, MOST_ROWS = 100, 500, 500, 100, 3, 1000
"""Limits of what one call may ask for: entities searched, facts of a page, edges of a picture, relation paths and their
hops, answers of a form."""

ISSUED_ANSWERS, ISSUED_DAYS = 10_000, 14
"""Answers that may have feedback: so many and a twentieth, of the latest days."""
FEEDBACK_CHARACTERS = 16_000
"""Characters of such an answer as it is remembered, and of a correction."""
FEEDBACK_LIMITS = ((60, "a minute of a client"), (1000, "a day of a client"), (300, "a minute of all clients"))
"""Verdicts that are taken."""
FEEDBACK_PENDING = 10_000
"""Verdicts that may wait for the owner's decision."""
