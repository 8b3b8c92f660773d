"""Types as mentions: the stretches of a text that name a kind of entities, as `countries` and `movies`.

A type is named by its label or alias, in singular or plural, by another usual word for it (`movie` for film), by a part
of its label, or with a typing error.
"""

from __future__ import annotations

from dataclasses import dataclass

from kgqa_core.linking.english import singulars, type_words
from kgqa_core.linking.fold import fold_text
from kgqa_core.linking.mentions import ALIAS, CASED, LABEL, NAMED_TYPE, PART, TYPE, MentionDictionary
from kgqa_core.linking.typos import correct_type
from kgqa_core.linking.words import FUNCTION_WORDS

WORDS = 5
"""Words of a type's name at most."""
MOST = 3
"""Types that one stretch may mean at most."""
WHOLE, OTHER_WORD, PART_OF_NAME, MISTYPED = 1.0, 0.8, 0.5, 0.7
"""Confidence in a type by its name, by another usual word, by a part of its name; factor for a typing error."""
LEAST = 0.02
"""Confidence below which a type is not returned."""


@dataclass(frozen=True, slots=True)
class TypeMention:
    """A type that a stretch of a text may name.

    start, end: its place in the text.  confidence: in [0, 1].
    """

    start: int
    end: int
    text: str
    entity: int
    key: str
    label: str
    confidence: float


def find_types(text: str, mentions: MentionDictionary, typos: int) -> tuple[TypeMention, ...]:
    """Types that a text names, by place and falling confidence; of overlapping stretches the longest.

    typos: typing errors allowed in a word that is nothing else.
    """
    folded = fold_text(text)
    results: list[TypeMention] = []
    first, atoms = 0, folded.atoms()
    while first < len(atoms):
        step = 1
        for last in range(min(first + WORDS, len(atoms)) - 1, first - 1, -1):
            if atoms[first] in FUNCTION_WORDS or atoms[last] in FUNCTION_WORDS:
                continue
            words = folded.slice(first, last)
            types = types_of_words(words, mentions)
            if not types and first == last and typos and (correct := correct_type(words, mentions, typos)):
                types = [(entity, MISTYPED * confidence) for entity, confidence in types_of_words(correct, mentions)]
            if types:
                start, end = int(folded.first[first]), int(folded.last[last])
                results += [
                    TypeMention(start, end, text[start:end], entity, mentions.keys[entity], mentions.labels[entity],
                                round(confidence, 6))
                    for entity, confidence in types[:MOST] if confidence >= LEAST
                ]  # fmt: skip
                step = last - first + 1
                break
        first += step
    return tuple(results)


def types_of_words(words: str, mentions: MentionDictionary) -> list[tuple[int, float]]:
    """(entity, confidence) of the types that folded words name, the most confident first, ties by id."""
    best: dict[int, float] = {}

    def add(name: str, confidence: float) -> None:
        number = mentions.names.find(name)
        if number < 0:
            return
        start, stop = int(mentions.rows[number]), int(mentions.rows[number + 1])
        for index in range(start, stop):
            flags = int(mentions.entity_flags[index])
            if flags & TYPE:
                weight = PART_OF_NAME if flags & PART else WHOLE
                value = confidence * weight * (0.5 + 0.5 * float(mentions.commonness[index]))
                entity = int(mentions.entities[index])
                best[entity] = max(best.get(entity, 0.0), value)

    for form in singulars(words):
        add(form, 1.0)
    if not any(value > PART_OF_NAME for value in best.values()):
        for form in singulars(words):
            for other in type_words().get(form, ()):
                add(other, OTHER_WORD)
    return sorted(best.items(), key=lambda item: (-item[1], item[0]))


def is_type_word(words: str, name: int, mentions: MentionDictionary) -> bool:
    """Whether folded words are a common noun for a type: a type's name without capital, or the plural of one.

    name: number of the words as a name.
    """
    for form in singulars(words):
        number = name if form == words else mentions.names.find(form)
        if number >= 0 and mentions.flags[number] & NAMED_TYPE:
            start, stop = int(mentions.rows[number]), int(mentions.rows[number + 1])
            flags = [int(flag) for flag in mentions.entity_flags[start:stop]]
            if any(flag & TYPE and flag & (LABEL | ALIAS) and not flag & CASED for flag in flags):
                return True
    return False
