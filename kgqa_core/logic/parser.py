"""Reads an s-expression as GrailQA writes them, with the extensions of `forms`; `str(form)` writes it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NoReturn

from kgqa_core.errors import FormError, nearest
from kgqa_core.kg.vocabulary import STRING, XSD
from kgqa_core.logic import forms, syntax
from kgqa_core.logic.forms import OPS, REDUCTIONS, WHERE_OPS, Form, Step, Steps

DEEPEST = 100
"""Brackets in brackets; what is deeper was not written by a person."""

_KEY = r"<(?:[^>\\]|\\.)*>"
_WORD = r"[^\s()<>\"\[\]^\\]+"
_TOKEN = re.compile(
    rf"(?P<open>\()|(?P<close>\))|(?P<key>{_KEY})"
    rf"|(?:\"(?P<quoted>(?:[^\"\\]|\\.)*)\"|(?P<word>{_WORD}))"
    rf"(?:\^\^(?P<datatype>{_KEY}|{_WORD})|@(?P<lang>[\w-]*))?(?:\[(?P<unit>{_KEY}|{_WORD})\])?",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class _Leaf:
    at: int
    match: re.Match[str]


@dataclass(frozen=True, slots=True)
class _List:
    at: int
    items: list[_Leaf | _List]


_Node = _Leaf | _List


def parse(text: str) -> Form:
    """The form that an s-expression writes.

    Raises FormError, a ValueError, with the place (characters from 1) and what is wrong there.
    """
    half = re.search("[\ud800-\udfff]", text)
    if half is not None:
        _fail(half.start(), f"{half[0]!r} is half a character")
    return _form(_read(text))


def _read(text: str) -> _Node:
    """The brackets as nested lists."""
    stack: list[_List] = [_List(0, [])]
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        match = _TOKEN.match(text, at)
        if match is None:
            _fail(at, f"{text[at : at + 20]!r} is neither a bracket nor a key nor a literal")
        if match["open"]:
            if len(stack) > DEEPEST:
                _fail(at, f"brackets are more than {DEEPEST} deep")
            stack.append(_List(at, []))
            stack[-2].items.append(stack[-1])
        elif match["close"]:
            if len(stack) == 1:
                _fail(at, "this bracket closes nothing")
            stack.pop()
        else:
            stack[-1].items.append(_Leaf(at, match))
        at = match.end()
    if len(stack) > 1:
        _fail(stack[-1].at, "this bracket is never closed")
    whole = stack[0].items
    if not whole:
        _fail(0, "there is no form")
    if len(whole) > 1:
        at = whole[1].at
        _fail(at, f"a form ends before {text[at : at + 20]!r}")
    return whole[0]


def _form(node: _Node) -> Form:
    if isinstance(node, _Leaf):
        return _leaf(node)
    name, operands = _operator(node)
    build = _BUILDERS.get(name)
    if build is None:
        _fail(node.at, f"there is no operator {name!r}{nearest(name, _BUILDERS)}")
    least, most, usage = _USAGE[name]
    if len(operands) < least or (most is not None and len(operands) > most):
        _fail(node.at, f"{name} is written {usage}, and this has {len(operands)} operands")
    try:
        return build(name, operands)
    except FormError as fault:
        if str(fault).startswith(_PLACE):
            raise
        _fail(node.at, str(fault))


def _leaf(node: _Leaf) -> Form:
    key = node.match["key"]
    if key is not None:
        return forms.Entity(syntax.unescaped(key[1:-1]))
    word = node.match["word"]
    if node.match["quoted"] is None and node.match["datatype"] is None and node.match["unit"] is None:
        text = _bare(node)
        if syntax.bare_datatype(text) is None:
            return forms.Class(text) if syntax.is_class_like(text) else forms.Entity(text)
    return _literal(node, word)


def _literal(node: _Leaf, word: str | None) -> forms.Literal:
    datatype, language, unit = node.match["datatype"], node.match["lang"], node.match["unit"]
    text = word if word is not None else syntax.unescaped(node.match["quoted"])
    if datatype is not None:
        datatype = _unbracketed(datatype)
        datatype = XSD + datatype[4:] if datatype.startswith("xsd:") else datatype
    elif language is not None:
        datatype = "@" + language
    else:
        datatype = STRING if word is None else syntax.bare_datatype(text)
    if datatype is None:
        _fail(node.at, f"{text!r} has a unit, and is no number; write its datatype: {text}^^xsd:decimal[{unit}]")
    return forms.Literal(text, datatype, None if unit is None else _unbracketed(unit))


def _bare(node: _Leaf) -> str:
    """A word with what a language tag would be: an e-mail address is a key."""
    lang = node.match["lang"]
    return node.match["word"] + ("" if lang is None else "@" + lang)


def _unbracketed(text: str) -> str:
    return syntax.unescaped(text[1:-1]) if text.startswith("<") else text


def _operator(node: _List) -> tuple[str, list[_Node]]:
    if not node.items:
        _fail(node.at, "these brackets are empty")
    head = node.items[0]
    if isinstance(head, _List) or head.match["word"] is None:
        _fail(head.at, "a bracket begins with an operator, such as AND or JOIN")
    return _bare(head), node.items[1:]


def _step(node: _Node) -> Step:
    if isinstance(node, _List):
        name, operands = _operator(node)
        if name != "R" or len(operands) != 1 or isinstance(operands[0], _List):
            _fail(node.at, "a relation is written r, or (R r) for its inverse")
        return Step(_key(operands[0]), inverse=True)
    return Step(_key(node))


def _key(node: _Node) -> str:
    """A relation or class: a key, never a literal."""
    if isinstance(node, _List):
        _fail(node.at, "a key stands here, not a form")
    if node.match["key"] is not None:
        return _unbracketed(node.match["key"])
    if node.match["word"] is None or node.match["datatype"] is not None or node.match["unit"] is not None:
        _fail(node.at, f"{node.match[0]!r} is a literal, and a key stands here")
    return _bare(node)


def _path(node: _Node) -> Steps:
    """`r`, `(R r)`, or `(JOIN r path)`."""
    steps: list[Step] = []
    while isinstance(node, _List) and _operator(node)[0] == "JOIN":
        operands = _operator(node)[1]
        if len(operands) != 2:
            _fail(node.at, "a path of relations is written (JOIN r s)")
        steps.append(_step(operands[0]))
        node = operands[1]
    return (*steps, _step(node))


def _measure(node: _Node) -> tuple[Steps, bool]:
    name, operands = _operator(node) if isinstance(node, _List) else ("", [])
    if name == "COUNT":
        if len(operands) != 1:
            _fail(node.at, "a counted path is written (COUNT r)")
        return _path(operands[0]), True
    if name.lower() in forms.UNITS_OF_TIME:
        if len(operands) != 2:
            _fail(node.at, f"the time between two dates is written ({name} r s)")
        return (forms.TimeSpan(_key(operands[0]), until=_key(operands[1]), unit=name.lower()),), False
    return _path(node), False


def _value(node: _Node) -> forms.Literal:
    value = _form(node)
    if not isinstance(value, forms.Literal):
        _fail(node.at, f"{value} is no number and no date; write its datatype, such as 2010^^xsd:gYear")
    return value


def _where(node: _Node) -> forms.Where:
    if not isinstance(node, _List):
        _fail(node.at, "a condition on qualifiers is written (eq relation value)")
    op, operands = _operator(node)
    if op not in WHERE_OPS or len(operands) != 2:
        _fail(node.at, f"a condition on qualifiers is written (op relation value), op being {', '.join(WHERE_OPS)}")
    value = _form(operands[1])
    if not isinstance(value, (forms.Entity, forms.Literal)):
        _fail(operands[1].at, "a qualifier is compared with an entity or a literal")
    if op != "eq" and not isinstance(value, forms.Literal):
        _fail(operands[1].at, f"{op} compares with a number or a date, not with the entity {value}")
    return forms.Where(_key(operands[0]), op, value)


def _join(name: str, operands: list[_Node]) -> Form:
    return forms.Join((_step(operands[0]),), _form(operands[1]), tuple(_where(node) for node in operands[2:]))


def _arg(name: str, operands: list[_Node]) -> Form:
    return forms.Arg(name[3:].lower(), _form(operands[0]), *_measure(operands[1]))


def _nth(name: str, operands: list[_Node]) -> Form:
    index = operands[0]
    if isinstance(index, _List) or not re.fullmatch(r"[0-9]{1,9}", index.match[0]):
        _fail(index.at, "a place is a number from 1")
    first = name.startswith("FIRST")
    return forms.Nth(int(index.match[0]), name[-3:].lower(), _form(operands[1]), *_measure(operands[2]), first)


def _aggregate(name: str, operands: list[_Node]) -> Form:
    path, counted = _measure(operands[1])
    return forms.Aggregate(name.lower(), _form(operands[0]), path, (), counted)


def _group(name: str, operands: list[_Node]) -> Form:
    of, by = _form(operands[0]), _path(operands[1])
    if len(operands) == 2:
        return forms.Aggregate("count", of, (), by)
    how, inner = ("", []) if isinstance(operands[2], _Leaf) else _operator(operands[2])
    if how.lower() not in (*REDUCTIONS, *forms.BEST_MEMBERS) or len(inner) != 1:
        _fail(
            operands[2].at, "what is computed of each group is written (SUM r), (AVG r), (MEDIAN r), (MAX r) or (MIN r)"
        )
    path, counted = _measure(inner[0])
    return forms.Aggregate(how.lower(), of, path, by, counted)


def _top(name: str, operands: list[_Node]) -> Form:
    group = _form(operands[0])
    if not isinstance(group, forms.Aggregate):
        _fail(operands[0].at, f"{name} takes a GROUP")
    return replace(group, pick=name[3:].lower())


def _compare(name: str, operands: list[_Node]) -> Form:
    path, counted = _measure(operands[0])
    value = _form(operands[1])
    if isinstance(value, forms.Literal):
        return forms.Compare(name, path, value, counted)
    return forms.CompareTo(name, path, value, counted)


def _greater(name: str, operands: list[_Node]) -> Form:
    path, counted = _measure(operands[2])
    return forms.Greater(_form(operands[0]), _form(operands[1]), path, "max" if name == "GREATER" else "min", counted)


def _forms(operands: list[_Node]) -> tuple[Form, ...]:
    return tuple(_form(node) for node in operands)


_Builder = Callable[[str, list[_Node]], Form]

_BUILDERS: dict[str, _Builder] = {
    "JOIN": _join,
    "AND": lambda name, operands: forms.And(_forms(operands)),
    "OR": lambda name, operands: forms.Or(_forms(operands)),
    "MINUS": lambda name, operands: forms.Minus(*_forms(operands)),
    "COUNT": lambda name, operands: forms.Count(*_forms(operands)),
    "ARGMAX": _arg,
    "ARGMIN": _arg,
    **dict.fromkeys(("NTHMAX", "NTHMIN", "FIRSTMAX", "FIRSTMIN"), _nth),
    **dict.fromkeys((*map(str.upper, REDUCTIONS), "VALUES"), _aggregate),
    "GROUP": _group,
    **dict.fromkeys(("TOPMAX", "TOPMIN"), _top),
    "SHARE": lambda name, operands: forms.Share(*_forms(operands)),
    **{op: _compare for op in OPS},
    "TC": lambda name, operands: forms.TimeConstraint(_form(operands[0]), _path(operands[1]), _value(operands[2])),
    "GREATER": _greater,
    "LESS": _greater,
    "HOLDS": lambda name, operands: forms.Holds(*_forms(operands)),
    "QUALIFIER": lambda name, operands: forms.Qualifier(_key(operands[0]), *_forms(operands[1:])),
    "TYPE": lambda name, operands: forms.Class(_key(operands[0])),
}

_USAGE: dict[str, tuple[int, int | None, str]] = {
    "JOIN": (2, None, "(JOIN r X), then conditions on qualifiers"),
    "AND": (2, None, "(AND X Y)"),
    "OR": (2, None, "(OR X Y)"),
    "MINUS": (2, 2, "(MINUS X Y)"),
    "COUNT": (1, 1, "(COUNT X)"),
    "ARGMAX": (2, 2, "(ARGMAX X r)"),
    "ARGMIN": (2, 2, "(ARGMIN X r)"),
    **{name: (3, 3, f"({name} n X r)") for name in ("NTHMAX", "NTHMIN", "FIRSTMAX", "FIRSTMIN")},
    **{name: (2, 2, f"({name} X r)") for name in (*map(str.upper, REDUCTIONS), "VALUES")},
    "GROUP": (2, 3, "(GROUP X r), then what is computed of each group, such as (SUM s)"),
    **{name: (1, 1, f"({name} (GROUP X r))") for name in ("TOPMAX", "TOPMIN")},
    "SHARE": (2, 2, "(SHARE X Y)"),
    **{op: (2, 2, f"({op} r value)") for op in OPS},
    "TC": (3, 3, "(TC X r value)"),
    "GREATER": (3, 3, "(GREATER X Y r)"),
    "LESS": (3, 3, "(LESS X Y r)"),
    "HOLDS": (2, 2, "(HOLDS X Y)"),
    "QUALIFIER": (2, 3, "(QUALIFIER q (JOIN r X) Y)"),
    "TYPE": (1, 1, "(TYPE key)"),
}

_PLACE = "s-expression, character "


def _fail(at: int, problem: str) -> NoReturn:
    raise FormError(f"{_PLACE}{at + 1}: {problem}")
