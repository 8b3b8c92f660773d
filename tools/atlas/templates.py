"""The wordings in templates.yaml, read and checked."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from kgqa_core.datasets.files.packaged_yaml import read_yaml
from tools.atlas import vocabulary as v


@dataclass(frozen=True)
class TemplateWordings:
    """Sentences of one template: `seen` in every split, `test` in test questions only."""

    seen: tuple[str, ...]
    test: tuple[str, ...]


@dataclass(frozen=True)
class Attribute:
    """A property that questions ask for.  path: full relation keys.  of: kinds of thing."""

    name: str
    of: tuple[str, ...]
    path: tuple[str, ...]
    one: TemplateWordings
    many: TemplateWordings | None


@dataclass(frozen=True)
class NamePhrase:
    """A name for a thing (or several) one hop away from the topic entity."""

    name: str
    of: str
    to: str
    path: tuple[str, ...]
    several: bool
    wordings: TemplateWordings


@dataclass(frozen=True)
class Templates:
    """Everything in templates.yaml."""

    attributes: tuple[Attribute, ...]
    phrases: tuple[NamePhrase, ...]
    operators: dict[str, TemplateWordings]


@cache
def templates() -> Templates:
    """The bundled wordings, in the order of the file."""
    text = Path(__file__).with_name("templates.yaml").read_text(encoding="utf-8")
    tree: dict[str, dict[str, dict[str, Any]]] = read_yaml(text)
    attributes = tuple(
        Attribute(
            name=name,
            of=(row["of"],) if isinstance(row["of"], str) else tuple(row["of"]),
            path=tuple(v.relation(r) for r in row["path"]),
            one=_wordings(row, "one", "test"),
            many=_wordings(row, "many", "many_test") if "many" in row else None,
        )
        for name, row in tree["attributes"].items()
    )
    phrases = tuple(
        NamePhrase(
            name=name,
            of=row["of"],
            to=row["to"],
            path=tuple(v.relation(r) for r in row["path"]),
            several=bool(row.get("several", False)),
            wordings=_wordings(row, "one", "test"),
        )
        for name, row in tree["phrases"].items()
    )
    operators = {name: _wordings(row, "wordings", "test") for name, row in tree["operators"].items()}
    return Templates(attributes, phrases, operators)


def compose(attribute: Attribute, phrase: NamePhrase) -> TemplateWordings | None:
    """Sentences of an attribute with a phrase in the place of {x}; None where the two do not fit.

    A sentence is for test only when either part is.
    """
    sentences = attribute.many if phrase.several else attribute.one
    if phrase.to not in attribute.of or sentences is None:
        return None
    known, new = _open_to_phrases(sentences.seen), _open_to_phrases(sentences.test)
    seen = [_fill(s, p) for s in known for p in phrase.wordings.seen]
    test = [_fill(s, p) for s in new for p in phrase.wordings.seen + phrase.wordings.test]
    test += [_fill(s, p) for s in known for p in phrase.wordings.test]
    return TemplateWordings(tuple(seen), tuple(test))


def _open_to_phrases(sentences: tuple[str, ...]) -> list[str]:
    """Sentences that stay readable with a long phrase in the place of {x}: little may follow it."""
    return [s for s in sentences if "{x}" in s and len(s.split("{x}")[1].split()) <= 2]


def _fill(sentence: str, phrase: str) -> str:
    return sentence.replace("{x}", phrase)


def _wordings(row: dict[str, Any], seen: str, test: str) -> TemplateWordings:
    return TemplateWordings(tuple(row[seen]), tuple(row[test]))
