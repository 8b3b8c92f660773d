"""One entity of Wikidata's JSON as statements: the Python reader, which defines what is valid and why.

It reads every shape that Wikidata has written since 2014: entity values with and without `id`, empty maps as `[]`,
snaks without datatype, lists in the place of maps, redirects, MediaInfo's `statements`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import polars as pl

from kgqa_core.kg.formats.base import CONTROL, ENTITY, LITERAL, MAX_REJECT_TEXT, QUALIFIERS, REJECTS, STATEMENTS
from kgqa_core.kg.formats.wikidata.json_values import (
    DECIMAL,
    STRING,
    STRINGS,
    WIKIBASE,
    WKT,
    Unreadable,
    point,
    time_term,
    unit_key,
)
from kgqa_core.kg.vocabulary import ALIAS, DESCRIPTION, LABEL

SAME_AS = "http://www.w3.org/2002/07/owl#sameAs"
LANGUAGE = "http://purl.org/dc/terms/language"
CATEGORY = WIKIBASE + "lexicalCategory"
FEATURE = WIKIBASE + "grammaticalFeature"
FORM = "http://www.w3.org/ns/lemon/ontolex#lexicalForm"
SENSE = "http://www.w3.org/ns/lemon/ontolex#sense"

LANGUAGE_RULE = "language"
"""Rule of labels, aliases and descriptions left out for their language."""

TEXTS = {
    "labels": LABEL,
    "lemmas": LABEL,
    "representations": LABEL,
    "glosses": LABEL,
    "aliases": ALIAS,
    "descriptions": DESCRIPTION,
}
CLAIMS = ("claims", "statements")
RANKS = {"normal": 0, "preferred": 1, "deprecated": -1}
PREFIXES = {"item": "Q", "property": "P", "lexeme": "L"}

Term = tuple[str, int, str | None, str | None]

_STATEMENT_NAMES = [name for name in STATEMENTS if name != "statement"]
_QUALIFIER_NAMES = [name for name in QUALIFIERS if name != "statement"]


class Rows:
    """Statements, qualifiers and rejects of some entities.  languages: those to keep, folded; all when None."""

    def __init__(self, languages: frozenset[str] | None = None) -> None:
        self.languages = languages
        self.statements: list[tuple[Any, ...]] = []
        self.qualifiers: list[tuple[Any, ...]] = []
        self.rejects: list[tuple[int, str, str]] = []
        self.filtered: Counter[str] = Counter()
        self.ignored = 0
        self.unread = 0

    def reject(self, line: int, reason: str, text: str) -> None:
        """Counts something that cannot be read."""
        self.rejects.append((line, reason, text[:MAX_REJECT_TEXT]))

    def frames(self) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
        """Statements, qualifiers and rejects, in the order of the file."""
        return (
            pl.DataFrame(self.statements, schema={n: STATEMENTS[n] for n in _STATEMENT_NAMES}, orient="row"),
            pl.DataFrame(self.qualifiers, schema={n: QUALIFIERS[n] for n in _QUALIFIER_NAMES}, orient="row"),
            pl.DataFrame(self.rejects, schema=REJECTS, orient="row"),
        )


def read_line(data: bytes, line: int, rows: Rows) -> None:
    """The entities of one line of a dump; brackets and blank lines are ignored."""
    text = data.strip(b" \t\r\n").removesuffix(b",").removeprefix(b",").strip(b" \t\r\n")
    if text in (b"", b"[", b"]"):
        rows.ignored += 1
        return
    try:
        value = decode(text)
    except Unreadable as fault:
        for other in (text[1:] * text.startswith(b"["), text[:-1] * text.endswith(b"]")):
            try:
                value = decode(other)
                break
            except Unreadable:
                pass
        else:
            rows.reject(line, str(fault), text[: 4 * MAX_REJECT_TEXT].decode("utf-8", errors="replace"))
            rows.unread += claims_in(text)
            return
    read_document(value, lambda _: line, rows)


def claims_in(data: bytes) -> int:
    """About how many claims are unread with JSON that cannot be read, beside the reject."""
    return max(0, data.count(b'"mainsnak"') - 1)


def decode(data: bytes) -> Any:
    """JSON.  Raises Unreadable."""
    try:
        return msgspec.json.decode(data)
    except UnicodeDecodeError:
        raise Unreadable("not JSON: the text is not UTF-8") from None
    except msgspec.MsgspecError as fault:
        raise Unreadable(f"not JSON: {str(fault).removeprefix('JSON is malformed: ')}") from None
    except RecursionError:
        raise Unreadable("not an entity: nested too deeply") from None


LineOf = Callable[[str], int]
"""The line of something, by its name."""


def read_document(value: Any, line_of: LineOf, rows: Rows) -> None:
    """An entity, several in a list, or `{"entities": {…}}`."""
    if isinstance(value, dict) and "id" not in value and isinstance(value.get("entities"), dict | list):
        value = value["entities"]
        value = list(value.values()) if isinstance(value, dict) else value
    if isinstance(value, list):
        rows.ignored += not value
        for entity in value:
            read_entity(entity, line_of, rows)
    else:
        read_entity(value, line_of, rows)


def read_entity(entity: Any, line_of: LineOf, rows: Rows) -> None:
    """The statements of one entity; what cannot be read is rejected, the rest stays."""
    if not isinstance(entity, dict):
        rows.reject(line_of(""), "not an entity: no JSON object", _text(entity))
        return
    key, target = entity.get("id"), entity.get("redirect")
    if key is None and isinstance(entity.get("entity"), str) and isinstance(target, str):
        rows.statements.append((entity["entity"], SAME_AS, target, ENTITY, None, None, 0))
        return
    if not isinstance(key, str) or not key:
        rows.reject(line_of(""), "an entity without id", _text(entity))
        return
    if not _is_key(key):
        rows.reject(line_of(""), f"the id {key!r} holds a control character", _text(entity))
        return
    if "missing" in entity:
        rows.ignored += 1
        return
    for name, value in entity.items():
        if name in TEXTS:
            _texts(key, name, value, line_of, rows)
        elif name in CLAIMS:
            _claims(key, value, line_of, rows)
        elif name in ("forms", "senses"):
            _parts(key, name, value, line_of, rows)
        elif name == "grammaticalFeatures":
            _links(key, FEATURE, value if isinstance(value, list) else [value], name, line_of, rows)
        elif name == "lexicalCategory":
            _links(key, CATEGORY, [value], name, line_of, rows)
        elif name == "language" and "lemmas" in entity:
            _links(key, LANGUAGE, [value], name, line_of, rows)


def _links(key: str, predicate: str, values: list[Any], name: str, line_of: LineOf, rows: Rows) -> None:
    for value in values:
        if isinstance(value, str) and value:
            rows.statements.append((key, predicate, value, ENTITY, None, None, 0))
        elif value is not None:
            rows.reject(line_of(key), f"{name} is not an entity", _text(value))


def _parts(key: str, name: str, value: Any, line_of: LineOf, rows: Rows) -> None:
    """Forms and senses of a lexeme, entities of their own."""
    for part in value if isinstance(value, list) else [value]:
        if isinstance(part, dict) and isinstance(part.get("id"), str) and part["id"]:
            predicate = FORM if name == "forms" else SENSE
            rows.statements.append((key, predicate, part["id"], ENTITY, None, None, 0))
        read_entity(part, line_of, rows)


def _texts(key: str, name: str, value: Any, line_of: LineOf, rows: Rows) -> None:
    """Labels, descriptions or aliases."""
    predicate = TEXTS[name]
    for language, texts in _pairs(value):
        for text in texts if isinstance(texts, list) else [texts]:
            if isinstance(text, dict):
                code, text = text.get("language", language), text.get("value")
            else:
                code = language
            if not isinstance(text, str) or not isinstance(code, str) or not code:
                rows.reject(line_of(key), f"{name} without language and value", _text({str(language): texts}))
                continue
            code = code.casefold()
            if rows.languages is not None and code not in rows.languages:
                rows.filtered[LANGUAGE_RULE] += 1
            else:
                rows.statements.append((key, predicate, text, LITERAL, "@" + code, None, 0))


def _claims(key: str, value: Any, line_of: LineOf, rows: Rows) -> None:
    for property_, claims in _pairs(value):
        for claim in claims if isinstance(claims, list) else [claims]:
            try:
                snak, rank = _main(claim)
                predicate = _property(snak, property_)
                rows.statements.append((key, predicate, *term(snak), rank))
            except Unreadable as fault:
                rows.reject(_claim_line(line_of, claim, key), str(fault), _text(claim))
                continue
            row = len(rows.statements) - 1
            for other, snaks in _pairs(claim.get("qualifiers")):
                for qualifier in snaks if isinstance(snaks, list) else [snaks]:
                    try:
                        rows.qualifiers.append((row, _property(qualifier, other), *term(qualifier)))
                    except Unreadable as fault:
                        rows.reject(_claim_line(line_of, claim, key), f"a qualifier: {fault}", _text(qualifier))


def readable_claims(value: Any) -> Iterator[tuple[Any, str, Term, int]]:
    """Claims of an entity with property, value and rank, as `read_entity` reads them, without those that it rejects."""
    for property_, claims in _pairs(value):
        for claim in claims if isinstance(claims, list) else [claims]:
            try:
                snak, rank = _main(claim)
                yield claim, _property(snak, property_), term(snak), rank
            except Unreadable:
                continue


def _claim_line(line_of: LineOf, claim: Any, key: str) -> int:
    name = claim.get("id") if isinstance(claim, dict) else None
    return line_of(name if isinstance(name, str) else key)


def _main(claim: Any) -> tuple[Any, int]:
    """The main snak of a claim and its rank."""
    if not isinstance(claim, dict):
        raise Unreadable("a claim that is no JSON object")
    rank = claim.get("rank", "normal")
    if not isinstance(rank, str) or rank not in RANKS:
        raise Unreadable(f"the rank {rank!r} is unknown"[:80])
    return claim.get("mainsnak"), RANKS[rank]


def _property(snak: Any, key: str | None) -> str:
    if not isinstance(snak, dict):
        raise Unreadable("no snak")
    result = snak.get("property", key)
    if not isinstance(result, str) or not result:
        raise Unreadable("a snak without property")
    if not _is_key(result):
        raise Unreadable(f"the property {result!r} holds a control character"[:80])
    return result


def _is_key(text: str) -> bool:
    """Whether a text has no control characters, line ends among them."""
    return text.isprintable() or not any(character in CONTROL for character in text)


def _pairs(value: Any) -> Iterator[tuple[str | None, Any]]:
    """The members of a map, which may be an empty list, or a list of its values."""
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list):
        yield from ((None, member) for member in value)
    elif value is not None:
        yield None, value


def term(snak: dict[str, Any]) -> Term:
    """Object, kind, datatype and detail of a snak.  Raises Unreadable."""
    kind = snak.get("snaktype")
    if kind in ("somevalue", "novalue"):
        return kind, LITERAL, WIKIBASE + kind, None
    if kind != "value":
        raise Unreadable(f"the kind of snak {kind!r} is unknown"[:80])
    data = snak.get("datavalue")
    if not isinstance(data, dict) or "value" not in data:
        raise Unreadable("a snak without value")
    form, value = data.get("type"), data["value"]
    if isinstance(value, dict):
        reader = _FORMS.get(form) if isinstance(form, str) else None
        if reader is not None:
            return reader(value)
    elif isinstance(value, str) and form not in _FORMS and form != "bad":
        datatype = snak.get("datatype")
        return value, LITERAL, STRINGS.get(datatype, STRING) if isinstance(datatype, str) else STRING, None
    raise Unreadable(f"a value of the form {form!r} that we do not know"[:80])


def _entity(value: dict[str, Any]) -> Term:
    key = value.get("id")
    if key is None:
        prefix, number = value.get("entity-type"), value.get("numeric-id")
        if not isinstance(prefix, str) or prefix not in PREFIXES or type(number) is not int or number < 0:
            raise Unreadable("an entity value without id")
        return f"{PREFIXES[prefix]}{number}", ENTITY, None, None
    if not isinstance(key, str) or not key:
        raise Unreadable("an entity value without id")
    if not _is_key(key):
        raise Unreadable(f"the id {key!r} holds a control character"[:80])
    return key, ENTITY, None, None


def _text_value(value: dict[str, Any]) -> Term:
    text, language = value.get("text"), value.get("language")
    if not isinstance(text, str) or not isinstance(language, str) or not language:
        raise Unreadable("a monolingual text without text and language")
    return text, LITERAL, "@" + language.casefold(), None


def _quantity(value: dict[str, Any]) -> Term:
    amount = value.get("amount")
    if type(amount) in (int, float):
        amount = f"{amount:+}"
    if not isinstance(amount, str) or not amount:
        raise Unreadable("a quantity without amount")
    return amount, LITERAL, DECIMAL, unit_key(value.get("unit"))


def _time(value: dict[str, Any]) -> Term:
    text, precision, calendar = value.get("time"), value.get("precision"), value.get("calendarmodel")
    if not isinstance(text, str) or type(precision) is not int or not isinstance(calendar, str):
        raise Unreadable("a time without time, precision and calendar")
    lexical, datatype, detail = time_term(text, precision, calendar)
    return lexical, LITERAL, datatype, detail


def _coordinate(value: dict[str, Any]) -> Term:
    return point(value.get("longitude"), value.get("latitude"), value.get("globe")), LITERAL, WKT, None


_FORMS: dict[str, Callable[[dict[str, Any]], Term]] = {
    "wikibase-entityid": _entity,
    "monolingualtext": _text_value,
    "quantity": _quantity,
    "time": _time,
    "globecoordinate": _coordinate,
}


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()[:MAX_REJECT_TEXT]
