"""Numbers that are written as text, with their unit: `135 MW`, `€ 1.200,50`, `5'11"`, `40 %`, `1.2 million`.

Phone numbers, codes and versions are none: a number has no leading zero, its groups have three digits, it has one
decimal mark, and nothing but a unit of `units.yaml` stands beside it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources

import yaml


@cache
def units() -> dict[str, tuple[str, str, float]]:
    """(what it measures, key, factor) of a unit by its spelling in lower case."""
    table = yaml.safe_load(resources.files("kgqa_core.kg").joinpath("units.yaml").read_text(encoding="utf-8"))
    return {
        word: (name, key, float(factor))
        for name, rows in table.items()
        for key, factor, *words in rows
        for word in words
    }


_SCALES = {"thousand": 1e3, "million": 1e6, "mio": 1e6, "mn": 1e6, "billion": 1e9, "bn": 1e9, "trillion": 1e12}
_SIGNS = "-+−–"
_MONEY = r"(?:US\$|[€$£¥₹]|(?:EUR|USD|GBP|CHF|JPY|INR)(?=[\s\d]))"
_SPACES = " \u00a0\u202f'’"
_BODY = rf"\d+(?:[.,{_SPACES}]\d+)*"
_QUANTITY = re.compile(
    rf"(?P<sign>[{_SIGNS}]?)\s*(?P<money>{_MONEY}?)\s*(?P<after>[{_SIGNS}]?)(?P<body>{_BODY})(?P<power>[eE][+-]?\d{{1,3}})?"
    rf"(?:\s*(?P<scale>{'|'.join(_SCALES)})\b\.?)?(?P<space>\s*)(?P<unit>[^\d\s][^\d]{{0,23}}[²³23]?|)",
    re.ASCII,
)
_TWO_PARTS = re.compile(r"(\d+)\s*([^\d\s.,]+)\s*(\d+(?:\.\d+)?)\s*([^\d\s]+)", re.ASCII)

LIKE = (
    rf"^[{_SIGNS}]?\s*(US\$|[€$£¥₹]|EUR|USD|GBP|CHF|JPY|INR)?\s*[{_SIGNS}]?\d[\d.,{_SPACES}]*([eE][+-]?\d+)?"
    rf"\s*(\D{{0,24}}|\D[^\d]{{0,23}}[23]|\d*\s*\D{{1,8}}\d+(\.\d+)?\s*\D{{1,8}})$"
)
"""What all numbers and dates that are looked for match, and some other texts, as a pattern of DuckDB."""

LONGEST = 40
"""Bytes of the longest text that is looked at."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with its unit.  family: of the unit, "" without one.

    marked: whether a unit, groups of digits or a decimal mark say that it is a number, not a code of digits.
    """

    number: float
    unit: str | None = None
    family: str = ""
    marked: bool = False


@dataclass(frozen=True, slots=True)
class DecimalMark:
    """The decimal mark of a relation's values; unclear: one that could be read in two ways, where no value decides."""

    mark: str
    unclear: str | None = None


def decimal_mark(texts: Iterable[str]) -> DecimalMark:
    """Which mark the numbers of one relation have: by those that can be read one way only, then by their currency.

    >>> decimal_mark(["1.200", "23,5"]).mark, decimal_mark(["1,050", "980"]).mark, decimal_mark(["€ 1.200"]).mark
    (',', '.', ',')
    """
    votes, money, unclear = Counter[str](), Counter[str](), None
    for text in texts:
        match = _QUANTITY.fullmatch(text.strip())
        if match is None:
            continue
        body = match["body"]
        marks = [mark for mark in ",." if mark in body]
        if len(marks) == 2:
            votes[max(marks, key=body.rindex)] += 1
        elif marks:
            mark, other = marks[0], ",."[marks[0] == ","]
            if body.count(mark) > 1:
                votes[other] += 1
            elif not re.fullmatch(r"[1-9]\d{0,2}[.,]\d{3}", body):
                votes[mark] += 1
            else:
                unclear = unclear or text
                symbol = f"{match['money']} {match['unit']}".lower()
                money[
                    "," if "€" in symbol or "eur" in symbol else "." if re.search(r"[$£]|usd|gbp", symbol) else ""
                ] += 1
    if votes:
        return DecimalMark(max(",.", key=lambda mark: (votes[mark], mark == ".")))
    return DecimalMark("," if money[","] > money["."] else ".", unclear)


def quantity(text: str, mark: str = ".") -> Quantity | None:
    """The number that a text is, by the decimal mark of its relation; None for what is none.

    >>> quantity("135 MW"), quantity("−7.5 °C").number, quantity("€ 1.200,50", ",").number, quantity("5'11\\"").number
    (Quantity(number=135.0, unit='Q6982035', family='power', marked=True), -7.5, 1200.5, 71.0)
    >>> quantity("+386 1 234 567"), quantity("0123"), quantity("3.11.4"), quantity("12-34")
    (None, None, None, None)
    """
    text = text.strip()
    two = _TWO_PARTS.fullmatch(text)
    if two is not None:
        return _two_parts(*two.groups())
    match = _QUANTITY.fullmatch(text)
    if match is None or (match["sign"] and match["after"]):
        return None
    value = _value(match["body"], mark)
    if value is None:
        return None
    value *= float("1" + (match["power"] or "")) * _SCALES.get(match["scale"] or "", 1.0)
    if match["sign"] in ("-", "−", "–") or match["after"] in ("-", "−", "–"):
        value = -value
    if not abs(value) < 1e300:
        return None
    plain = Quantity(value, marked=not match["body"].isdigit() or bool(match["scale"]))
    if match["money"]:
        if match["unit"]:
            return None
        return _with_unit(plain, match["money"].lower())
    if not match["unit"]:
        return plain
    word = match["unit"].strip().rstrip(".")
    if match["power"] or (not match["space"] and len(word) == 1 and word in "dDlLtTkK"):
        return None
    return _with_unit(plain, " ".join(word.lower().split()))


def _with_unit(number: Quantity, spelling: str) -> Quantity | None:
    """With a unit that is listed."""
    listed = units().get(spelling)
    if listed is None:
        return None
    family, key, factor = listed
    return replace(number, number=float(f"{number.number * factor:.15g}"), unit=key, family=family, marked=True)


def _two_parts(first: str, unit: str, second: str, smaller: str) -> Quantity | None:
    """`5'11"`, `1 h 30 min`: the sum in the smaller unit."""
    large, small = units().get(unit.lower()), units().get(smaller.lower())
    factor = _PARTS.get((large[1], small[1])) if large is not None and small is not None else None
    if factor is None or small is None or float(second) >= factor:
        return None
    return Quantity(float(first) * factor + float(second), small[1], small[0], True)


_PARTS: Mapping[tuple[str, str], float] = {
    ("Q3710", "Q218593"): 12, ("Q25235", "Q7727"): 60, ("Q7727", "Q11574"): 60, ("Q573", "Q25235"): 24,
    ("Q11573", "Q174728"): 100,
}  # fmt: skip
"""How many of the second unit make one of the first, of units that are written after one another."""


def _value(body: str, mark: str) -> float | None:
    whole, *fraction = body.split(mark)
    if len(fraction) > 1 or (fraction and not fraction[0].isdigit()):
        return None
    groups = re.split(rf"[.,{_SPACES}]", whole)
    marks = set(re.findall(rf"[.,{_SPACES}]", whole))
    if len(marks) > 1 or (len(groups) > 1 and (len(groups[0]) > 3 or any(len(group) != 3 for group in groups[1:]))):
        return None
    digits = "".join(groups)
    if len(digits) > 15 or (digits[0] == "0" and len(digits) > 1):
        return None
    return float(".".join([digits, *fraction]))
