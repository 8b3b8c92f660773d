"""A noun phrase in words, and small matters of English: articles, verbs in several, numbers as people write them."""

from __future__ import annotations

from dataclasses import dataclass

from kgqa_core.rewriting.phrases import plural


@dataclass(frozen=True, slots=True)
class Noun:
    """A noun phrase: `the` adjective head post, or `pre` head post; fixed: a name that stands as it is.

    known: whether the head says what sort of thing it is, rather than `thing`.
    """

    head: str = ""
    post: str = ""
    pre: str = ""
    fixed: str = ""
    many: bool = False
    adjective: str = ""
    known: bool = True

    def show(self, *, article: bool = True, many: bool | None = None) -> str:
        """In words."""
        if self.fixed:
            return self.fixed
        several = self.many if many is None else many
        head = plural(self.head) if several else self.head
        start = self.pre or ("the" if article else "")
        return " ".join(part for part in (start, self.adjective, head, self.post) if part)


def conjugated(verb: str, many: bool) -> str:
    """A verb of one as that of several: `owns` and `own`, `was in` and `were in`; the past stays.

    >>> conjugated("flows into", True), conjugated("was in", True), conjugated("starred in", True)
    ('flow into', 'were in', 'starred in')
    """
    first, space, rest = verb.partition(" ")
    if not many:
        return verb
    if first in _AUXILIARIES:
        first = _AUXILIARIES[first]
    elif first.endswith("ies"):
        first = first[:-3] + "y"
    elif first.endswith(("ches", "shes", "xes", "sses", "oes")):
        first = first[:-2]
    elif first.endswith("s") and not first.endswith("ss"):
        first = first[:-1]
    return first + space + rest


_AUXILIARIES = {"is": "are", "was": "were", "has": "have", "does": "do"}


def spelled(number: int) -> list[str]:
    """A number of four digits or more as people write it.

    >>> spelled(1500000)
    ['1.5 million', '1,500,000', '1500000']
    """
    options = [f"{number:,}", str(number)]
    for size, word in ((10**9, "billion"), (10**6, "million")):
        if abs(number) >= size and number % (size // 100) == 0:
            return [f"{number / size:g} {word}", *options]
    if number % 1000 == 0 and abs(number) < 10**6:
        options.append(f"{number // 1000} thousand")
    return options


def article(noun: str) -> str:
    """`a` or `an`."""
    return "an" if noun[:1].casefold() in "aeiou" and not noun.casefold().startswith(("uni", "eu", "one")) else "a"
