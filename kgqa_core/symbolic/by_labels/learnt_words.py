"""Which relations the words of training questions stand for: those with which they always come."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable

from kgqa_core.logic.forms import elements
from kgqa_core.logic.parser import parse
from kgqa_core.search.form_reading import root
from kgqa_core.search.graph import WORD
from kgqa_core.search.reading import CONTENT_FREE

ALWAYS = 0.9
"""Share of the questions with a word that have the relation that it stands for."""
SEEN, SEEN_ANYWHERE = 5, 10
"""Questions with a word from which on it stands for a relation, and from which on it may stand beside any."""


def learnt_words(
    questions: Iterable[tuple[str, str, Collection[str]]], read: Callable[[str], str] = str
) -> dict[str, list[str]]:
    """Of each root of a word the keys of the relations that it stands for; empty for a word that comes with many.

    questions: text, gold form, and the names in it, whose words do not count.  read: a word as it is read.  One that
    restricts an answer comes with the relation that restricts it, in all forms with the word; one of phrasing comes
    with any relation.  Copies of a question, as which corrected ones come, tell what its words stand for, and not that
    they stand beside any.
    """
    number, different = Counter[str](), Counter[str]()
    texts = set[str]()
    relations: dict[str, Counter[str]] = defaultdict(Counter)
    for text, form, names in questions:
        named = {word for name in names for word in WORD.findall(name.lower())}
        plain = {word for word in WORD.findall(text.lower()) if word not in named and word not in CONTENT_FREE}
        words = {root(read(word)) for word in plain}
        number.update(words)
        different.update(words if text not in texts else ())
        texts.add(text)
        used = set(elements(parse(form)).relations)
        for word in words:
            relations[word].update(used)
    result: dict[str, list[str]] = {}
    for word, count in sorted(number.items()):
        own = sorted(relation for relation, common in relations[word].items() if common >= ALWAYS * count)
        if count >= SEEN if own else different[word] >= SEEN_ANYWHERE:
            result[word] = own
    return result
