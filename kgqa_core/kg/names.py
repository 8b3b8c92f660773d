"""A readable name from a key, where the graph gives no label: of an IRI its end, with its words parted."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from urllib.parse import unquote

from kgqa_core.kg.vocabulary import RELATION_NAMES

CAMEL = re.compile(r"(?<=[a-zß-öø-ÿ0-9])(?=[A-ZÀ-ÖØ-Þ])|(?<=[A-Z])(?=[A-Z][a-z])")
"""Where words begin inside one that is written without spaces, as in `has|MD5|Hash`."""
_BREAKS = re.compile(rf"{CAMEL.pattern}|[_./\s-]+")

_LOW, _UP = "a-zß-öø-ÿ", "A-ZÀ-ÖØ-Þ"
_NUMBER = "[0-9][0-9._-]*|[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}|[0-9a-f]{24,}"
_IN_GENERAL = "ids?|uuid|resources?|entit(?:y|ies)|items?|nodes?|objects?|things?|data"
_Steps = tuple[tuple[str, str], ...]
_IRI = "^([A-Za-z][A-Za-z0-9+.-]*://|urn:)"
_PATH: _Steps = (
    ("^urn:[^:]*:(?:.*:)?([^:]*[A-Za-z][^:]*)$", r"urn://-/\1"),
    ("^urn:.*:([^:]+):([^:]+)$", r"urn://-/\1/\2"),
    ("(?:#(?:this|me|it))?[/#]*$", ""),
    (r"^(?:urn:|[A-Za-z][A-Za-z0-9+.-]*://[^/#]*[/#]+)([^/#])", r"/\1"),
    (rf"[/:](?:{_IN_GENERAL})([/#:](?:{_NUMBER}))$", r"/\1"),
)
_LONG = rf"/(?:resource|wiki)/[A-Z0-9]+/[^/#]+$|[/#:](?:{_NUMBER})$"
"""Paths whose end is more than what is after the last slash: `AC/DC_Museum`, `75/27`, `person/42`."""
_LONG_END: _Steps = (
    (r"^.*?(?:/(?:resource|wiki)/([A-Z0-9]+/[^/#]+)|[/#]([0-9]+(?:/[0-9]+)+)"
     rf"|[/#:]([A-Za-z][^/#:.]{{2,}})[/#:]({_NUMBER})|([^/#]+))$", r"\1\2\3 \4\5"),
)  # fmt: skip
_CAPITALS = ((rf"([{_LOW}0-9])([{_UP}][{_LOW}])", r"\1 \2"),) * 2  # a match takes the letter that the next begins with
_WORD = rf"^(?:[{_UP}0-9]|[{_LOW}]{{2}})[{_UP}{_LOW}0-9]*(?: (?:{_NUMBER}))?$"
"""What may be several words in one, unlike `iPhone` and `YouTube Music`."""
_PARTED: _Steps = (
    *_CAPITALS,
    (r"\bMc ([A-Z])", r"Mc\1"),
    ("([a-z][A-Z]|[A-Z]{2})([A-Z][a-z]{4})", r"\1 \2"),
    (rf"( [^ ]*[{_LOW}])([A-Z]+)( |$)", r"\1 \2\3"),
    (rf"([{_UP}][{_LOW}]{{2,}})([0-9]+)( |$)", r"\1 \2\3"),
)
"""Parts words where it is likely that they are some: not `PostgreSQL`, `SQLite`, `H2O`."""
_ALL_PARTED: _Steps = (
    *((rf"([{_LOW}0-9])([{_UP}])", r"\1 \2"),) * 2,
    ("([A-Z])([A-Z][a-z])", r"\1 \2"),
    (rf"([{_UP}{_LOW}]{{3}})([0-9]+)$", r"\1 \2"),
)
_ENCODED = "^[^ \t%]*(?:%[0-9A-Fa-f]{2}[^ \t%]*)+$"
_SNAKE, _NO_SNAKE = "^[^ \t_@]+(?:_+[^ \t_@]+)+$", r"^/?[mg][./]|\.[a-z][a-z0-9]{0,4}$"
"""Keys that are no IRIs in which underscores stand for spaces; but not ids of Freebase and names of files."""


BLANK_NODE = r"^_:|(^|[/#])\.well-known/genid/|[/#]genid[\d-]+$"
"""Keys of blank nodes, also of those that were given an IRI; as Python and DuckDB have patterns."""


def _sql(text: str, steps: _Steps) -> str:
    for pattern, replacement in steps:
        text = f"regexp_replace({text}, '{pattern}', '{replacement}', 'g')"
    return text


def _as_format(sql: str) -> str:
    return sql.replace("{", "{{").replace("}", "}}").replace("$key", "{key}")


_DECODED = "CASE WHEN contains(x, '%') THEN coalesce(try(url_decode(x)), x) ELSE x END"
_LAST_SQL = (
    f"list_transform([{_sql('$key', _PATH)}], lambda x: CASE WHEN regexp_matches(x, '{_LONG}') "
    f"THEN trim({_sql('x', _LONG_END)}) ELSE regexp_extract(x, '[^/#]*$') END)"
)
_IRI_SQL = f"list_transform({_LAST_SQL}, lambda x: trim(replace({_DECODED}, '_', ' ')))"
_PLAIN_SQL = f"list_transform([$key], lambda x: CASE WHEN regexp_matches(x, '{_ENCODED}') THEN {_DECODED} ELSE x END)"
NAME_SQL = _as_format(
    f"CASE WHEN regexp_matches($key, '{_IRI}') THEN list_transform({_IRI_SQL}, lambda x: "
    f"CASE WHEN regexp_matches(x, '{_WORD}') THEN {_sql('x', _PARTED)} ELSE x END)[1] "
    f"ELSE list_transform({_PLAIN_SQL}, lambda x: CASE WHEN regexp_matches(x, '{_SNAKE}') "
    f"AND NOT regexp_matches(x, '{_NO_SNAKE}') THEN replace(x, '_', ' ') ELSE x END)[1] END"
)
"""`key_name` as a DuckDB expression of a column."""
END_SQL = _as_format(f"CASE WHEN regexp_matches($key, '{_IRI}') THEN {_IRI_SQL}[1] ELSE $key END")
"""The end of an IRI as it is written, decoded and with spaces for underscores; any other key as it is."""
OTHER_NAMES_SQL = _as_format(
    f"list_transform([CASE WHEN regexp_matches($key, '{_IRI}') THEN {_IRI_SQL}[1] ELSE $key END], lambda x: "
    f"CASE WHEN regexp_matches(x, '{_WORD}') THEN [x, {_sql('x', _ALL_PARTED)}] ELSE [] END)[1]"
)
"""What else a key without label is found by, a list: its end as it is written, and with all its words parted."""


def bare_key(text: str) -> str:
    """A key without the angle brackets that it may be written in.

    >>> bare_key("<http://example.org/a>")
    'http://example.org/a'
    """
    return text[1:-1] if text.startswith("<") and text.endswith(">") else text


def key_name(key: str) -> str:
    """The end of an IRI, decoded, in words; of another key its words where no space is in it.

    The end of an IRI is its last part, with the one before where that is a number or an id.

    >>> key_name("http://example.org/New_York%21"), key_name("http://example.org/v#PlatformTeam")
    ('New York!', 'Platform Team')
    >>> key_name("http://x.org/id/person/42#this"), key_name("http://x.org/PostgreSQL"), key_name("AC%2FDC_Museum")
    ('person 42', 'PostgreSQL', 'AC/DC Museum')
    """
    if not re.match(_IRI, key):
        key = _decoded(key) if "%" in key and re.match(_ENCODED, key) else key
        snake = "_" in key and re.match(_SNAKE, key) and not re.search(_NO_SNAKE, key)
        return key.replace("_", " ") if snake else key
    name = key_end(key)
    return _applied(name, _PARTED) if re.match(_WORD, name) else name


def is_blank_node(key: str) -> bool:
    """Whether a key is that of a blank node (`BLANK_NODE`).

    >>> is_blank_node("_:b7"), is_blank_node("http://x.org/.well-known/genid/7"), is_blank_node("http://x.org/v#Genid")
    (True, True, False)
    """
    return re.search(BLANK_NODE, key) is not None


def is_unnamed(key: str, name: str) -> bool:
    """Whether the name of a thing is only the label of a blank node, which holds for one file."""
    return is_blank_node(key) and name == key_name(key)


def relation_name(key: str) -> str:
    """The name of a relation without label: as `key_name`, and words are parted wherever they may be.

    Keys in which words are parted already, as Freebase's and `directed_by`, stay as they are.

    >>> relation_name("http://x.org/v#hasTopping"), relation_name("ns1:releaseDate"), relation_name("P31")
    ('has topping', 'release date', 'P31')
    >>> relation_name("directed_by"), relation_name("people.person.place_of_birth"), relation_name("hasMD5Hash")
    ('directed_by', 'people.person.place_of_birth', 'has MD5 hash')
    """
    prefixed, given = re.match(r"[a-z][\w-]*:([A-Za-z_]\w*)$", key), key
    if prefixed and not key.startswith("urn:"):
        key = prefixed[1].replace("_", " ")
    elif re.match(_IRI, key):
        key = key_end(key)
    return RELATION_NAMES.get(given) or (key if re.search(r"[./:]", key) else in_words(key))


def word_parts(text: str) -> list[str]:
    """The parts of a text between spaces, separators and small and large letters, as they are written.

    >>> word_parts("has_MD5Hash"), word_parts("people.placeOf birth")
    (['has', 'MD5', 'Hash'], ['people', 'place', 'Of', 'birth'])
    """
    return [part for part in _BREAKS.split(text) if part]


def in_words(text: str) -> str:
    """A text with its words parted by their capitals; those after a small one begin small.

    >>> in_words("birthPlace"), in_words("wikiPageID"), in_words("PizzaTopping"), in_words("has MD5 hash")
    ('birth place', 'wiki page ID', 'Pizza Topping', 'has MD5 hash')
    """
    words = CAMEL.split(text)
    if len(words) == 1:
        return text
    small = words[0][:1].islower()
    return " ".join(word.lower() if small and word[1:].islower() else word for word in words)


def key_end(key: str) -> str:
    """The end of an IRI as it is written, decoded and with spaces for underscores; any other key as it is."""
    if not re.match(_IRI, key):
        return key
    path = _applied(key, _PATH)
    end = _applied(path, _LONG_END).strip(" ") if re.search(_LONG, path) else re.split("[/#]", path)[-1]
    return _decoded(end).replace("_", " ").strip(" ")


def _applied(text: str, steps: _Steps) -> str:
    for pattern, replacement in steps:
        text = re.sub(pattern, replacement, text)
    return text


def _decoded(text: str) -> str:
    with contextlib.suppress(UnicodeDecodeError):
        return unquote(text, errors="strict")
    return text


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
