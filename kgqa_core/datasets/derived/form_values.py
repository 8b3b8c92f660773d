"""Numbers, dates and quoted strings that a question names, and how a graph writes such literals."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from kgqa_core.kg.store import KgStore
from kgqa_core.kg.vocabulary import STRING, XSD
from kgqa_core.logic import forms
from kgqa_core.logic.forms import Form, with_children
from kgqa_core.logic.measures import measure
from kgqa_core.logic.syntax import DATE, DECIMAL, INTEGER, YEAR

VALUES = 2
"""Values of a text that are tried."""

MONTH = XSD + "gYearMonth"

_MONTHS = "january february march april may june july august september october november december".split()
_NAME = rf"(?P<name>{'|'.join(f'{month[:3]}(?:{month[3:]})?' for month in _MONTHS)}|sept)\.?"
_DAY = r"(?:the\s+)?(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>\d{4})(?![\w-])"
_DATES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?<![\w.-])(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})(?![\w-])",
        r"(?<![\w./-])(?P<month>\d{1,2})/(?P<day>\d{1,2})/(?P<year>\d{4})(?![\w/-])",
        rf"\b{_NAME}\s+{_DAY},?\s+{_YEAR}",
        rf"\b{_DAY}\s+(?:of\s+)?{_NAME},?\s+{_YEAR}",
        rf"\b{_NAME},?\s+{_YEAR}",
        r"(?<![\w.-])(?P<year>\d{4})-(?P<month>\d{2})(?![\w-])",
    )
)
_NUMBER = re.compile(
    r"(?<![\w.,-])(?P<whole>-?\d{1,3}(?:,\d{3})+|-?\d+)(?P<part>\.\d+)?(?P<power>e[+-]?\d+)?"
    r"(?:\s+(?P<scale>thousand|million|billion|trillion))?(?![\w-]|,\d)",
    re.IGNORECASE,
)
_SCALES = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_QUOTED = re.compile(r'(?:"(?P<plain>[^"]{1,60})"|“(?P<curved>[^”]{1,60})”)')


@dataclass(frozen=True, slots=True)
class SlotValue:
    """A value in a text, as it stands there; number, time, string: as a literal of each kind, where it may be one."""

    text: str
    number: forms.Literal | None = None
    time: forms.Literal | None = None
    string: forms.Literal | None = None


def values_in(text: str) -> list[SlotValue]:
    """The dates, numbers, years and quoted strings that a text names, at most `VALUES`.

    >>> [value.text for value in values_in("before Aug. the 11th, 2009, more than 1.5 million")]
    ['Aug. the 11th, 2009', '1.5 million']
    """
    results = []
    for pattern in _DATES:
        for match in list(pattern.finditer(text)):
            literal = _date(match.groupdict())
            if literal is not None:
                results.append(SlotValue(match[0], time=literal))
                text = text.replace(match[0], " ")
    for match in _QUOTED.finditer(text):
        results.append(SlotValue(match[0], string=forms.Literal(match["plain"] or match["curved"], STRING)))
    results += _numbers(_QUOTED.sub(" ", text))
    return list(dict.fromkeys(results))[:VALUES]


def _date(parts: Mapping[str, str | None]) -> forms.Literal | None:
    month = parts.get("month")
    if (name := parts.get("name")) is not None:
        month = str(next(n for n, own in enumerate(_MONTHS, start=1) if own.startswith(name.lower()[:3])))
    day = parts.get("day")
    if not 1 <= int(month or 0) <= 12 or (day is not None and not 1 <= int(day) <= 31):
        return None
    if day is None:
        return forms.Literal(f"{parts['year']}-{int(month or 0):02d}", MONTH)
    return forms.Literal(f"{parts['year']}-{int(month or 0):02d}-{int(day):02d}", DATE)


def _numbers(text: str) -> Iterator[SlotValue]:
    for match in _NUMBER.finditer(text):
        plain = match["whole"].replace(",", "") + (match["part"] or "")
        year = forms.Literal(plain, YEAR) if re.fullmatch(r"[12]\d{3}", match[0]) else None
        if match["scale"]:
            value = float(plain + (match["power"] or "")) * 10 ** _SCALES[match["scale"].lower()]
            plain = str(round(value)) if value == round(value) else f"{value:g}"
        elif match["power"]:
            plain += match["power"].lower()
        whole = re.fullmatch(r"-?\d+", plain) is not None
        yield SlotValue(match[0], forms.Literal(plain, INTEGER if whole else DECIMAL), year)


def datatypes(store: KgStore) -> dict[str, str]:
    """The datatype that most of the numbers which a relation leads to have, by its key."""
    rows = store.connection.execute(
        "SELECT r.key, arg_max(c.datatype, (c.n, c.datatype)) FROM (SELECT t.relation, e.datatype, count(*) AS n "
        "FROM triples t JOIN entities e ON e.id = t.tail WHERE e.kind = 'literal' AND e.number IS NOT NULL "
        "GROUP BY ALL) c JOIN relations r ON r.id = c.relation WHERE c.datatype IS NOT NULL GROUP BY r.key ORDER BY 1"
    ).fetchall()
    return dict(rows)


def as_stored(form: Form, numbers: Mapping[str, str]) -> Form:
    """A form whose numbers have the datatypes of the relations that lead to them.  numbers: of `datatypes`."""

    def typed(literal: forms.Literal, relation: str) -> forms.Literal:
        found = measure(literal)
        number = found is not None and literal.datatype in (INTEGER, DECIMAL)
        return replace(literal, datatype=numbers[relation]) if number and relation in numbers else literal

    def change(node: Form) -> Form | None:
        match node:
            case forms.Join(path=path, of=forms.Literal() as of):
                return replace(node, of=typed(of, path[-1].relation))
            case forms.Compare(path=path, value=value, counted=False):
                return replace(node, value=typed(value, path[-1].relation))
        return None

    return mapped(form, change)


def mapped(form: Form, change: Callable[[Form], Form | None]) -> Form:
    """A form in which every node for which `change` gives another is that; what is below it is not looked at."""

    changed = change(form)
    return changed if changed is not None else with_children(form, lambda part: mapped(part, change))
