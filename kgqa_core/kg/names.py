"""A readable name from a key, where the graph gives no label."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from urllib.parse import unquote

_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")

NAME_SQL = (
    "CASE WHEN regexp_matches({key}, '^[A-Za-z][A-Za-z0-9+.-]*://') "
    "THEN replace(coalesce(try(url_decode(regexp_extract({key}, '([^/#]+)[/#]*$', 1))), "
    "regexp_extract({key}, '([^/#]+)[/#]*$', 1)), '_', ' ') ELSE {key} END"
)
"""`key_name` as a DuckDB expression of a column."""


def bare_key(text: str) -> str:
    """A key without the angle brackets that it may be written in.

    >>> bare_key("<http://example.org/a>")
    'http://example.org/a'
    """
    return text[1:-1] if text.startswith("<") and text.endswith(">") else text


def key_name(key: str) -> str:
    """The part of an IRI after its last `/` or `#`, decoded, with spaces for underscores; any other key as it is.

    >>> key_name("http://example.org/New_York%21")
    'New York!'
    >>> key_name("directed_by")
    'directed_by'
    """
    if not _IRI.match(key):
        return key
    tail = re.split(r"[/#]", key.rstrip("/#"))[-1]
    with contextlib.suppress(UnicodeDecodeError):
        tail = unquote(tail, errors="strict")
    return tail.replace("_", " ")


def language_order(languages: Iterable[str]) -> list[str]:
    """Languages of names, best first, lower case; `en-*` stands for every variant of English.

    The wanted ones, each followed by what it is a variant of; then `mul`, Wikidata's names for all languages; then
    variants of the wanted ones.  Any other language comes after these.

    >>> language_order(["en-GB", "de"])
    ['en-gb', 'en', 'de', 'mul', 'en-gb-*', 'en-*', 'de-*']
    """
    exact: dict[str, None] = {}
    for language in languages:
        parts = language.casefold().split("-")
        for length in range(len(parts), 0, -1):
            exact["-".join(parts[:length])] = None
    return [*exact, "mul", *(f"{language}-*" for language in exact if language)]
