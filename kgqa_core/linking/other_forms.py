"""Other forms of an entity's name: adjectives and inhabitants of places (`Swiss`), and abbreviations (`the UK`).

The forms are general knowledge of English (`english.py`); what they mean is looked up among the names of the graph.
"""

from __future__ import annotations

from dataclasses import dataclass

from kgqa_core.linking.english import abbreviations, demonyms, place_names, singulars, type_words
from kgqa_core.linking.fold import Folded, fold
from kgqa_core.linking.mentions import CASED, PART, MentionDictionary
from kgqa_core.linking.words import FUNCTION_WORDS

ADJECTIVE, ABBREVIATION = "adjective", "abbreviation"
WORDS = 4
"""Words of such a form at most."""
CERTAIN, RULE, PRONOUN = 0.8, 0.7, 0.5
"""Probability of a form that the tables have, of an adjective by rule, of one that is also a word of grammar."""
_COUNTING = frozenset("all any both each either few many most much none one some which".split())
_SPEECH = ("speak", "spoke")
"""Beginnings of words that say that a language is meant."""
STEM, FAR_MORE = 5, 3
"""Letters of a word that are compared; times as many neighbours as an entity has that is far better known."""


@dataclass(frozen=True, slots=True)
class OtherForm:
    """A stretch of a text that means an entity by another form of its name.

    first, last: atoms of the text.  name: number of the entity's name in the dictionary.  candidates: (entity,
    commonness), the most common first.  preferred: to an entity that has the words as its name, as in `Swiss cities`
    and `the Swiss`, and where the entity is far better known.
    """

    first: int
    last: int
    kind: str
    name: int
    probability: float
    candidates: tuple[tuple[int, float], ...]
    preferred: bool = False


def other_forms(text: str, folded: Folded, mentions: MentionDictionary) -> list[OtherForm]:
    """Adjectives and abbreviations in a text, in order of their place, overlapping ones too."""
    atoms = folded.atoms()
    results = []
    for first in range(len(atoms)):
        for last in range(first, min(first + WORDS, len(atoms))):
            words = " ".join(atoms[first : last + 1])
            surface = text[int(folded.first[first]) : int(folded.last[last])]
            if (names := abbreviations().get(words)) and not _of_type(atoms, last):
                probability = _pronoun(atoms, first, surface, text) if words in FUNCTION_WORDS else CERTAIN
                form = _abbreviation(first, last, words, names, probability, mentions) if probability else None
            elif last > first and (names := abbreviations().get(atoms[first])):
                longer = tuple(f"{name} {rest}" for name in names for rest in [" ".join(atoms[first + 1 : last + 1])])
                form = _abbreviation(first, last, words, longer, CERTAIN, mentions)
            else:
                form = adjective(first, last, words, atoms, mentions)
            if form is not None:
                results.append(form)
    return results


def _abbreviation(
    first: int, last: int, words: str, names: tuple[str, ...], probability: float, mentions: MentionDictionary
) -> OtherForm | None:
    for name in names:
        if (number := mentions.find_whole(name)) >= 0:
            entities = tuple(_whole(number, mentions))
            same = mentions.find_whole(words)
            known = (
                max((mentions.degree(entity) for entity, _ in _whole(same, mentions)), default=0) if same >= 0 else 0
            )
            preferred = mentions.degree(entities[0][0]) >= FAR_MORE * max(known, 1)
            return OtherForm(first, last, ABBREVIATION, number, probability, entities, preferred)
    return None


def _of_type(atoms: list[str], last: int) -> bool:
    """Whether words that may be an abbreviation end in a type, as in `the states of Mexico`."""
    return last + 1 < len(atoms) and atoms[last + 1] == "of" and singulars(atoms[last])[-1] in type_words()


def _pronoun(atoms: list[str], first: int, surface: str, text: str) -> float:
    """How likely a word of grammar, as `us`, is an abbreviation: by capitals, or by what stands before it."""
    if surface.isupper() and text != text.upper():
        return CERTAIN
    before = atoms[first - 1] if first else ""
    if before == "the":
        return CERTAIN
    counted = first > 1 and atoms[first - 2] in _COUNTING
    return PRONOUN if before in ("in", "of", "from") and not counted else 0.0


def adjective(first: int, last: int, words: str, atoms: list[str], mentions: MentionDictionary) -> OtherForm | None:
    """The place that words at a place of a text are the adjective of, or its inhabitants.

    words: folded; those of the atoms, or what they are typed wrongly for.
    """
    if atoms[first] in FUNCTION_WORDS or atoms[last] in FUNCTION_WORDS or len(words) < 4 or not words.isascii():
        return None
    if last > first and words not in demonyms() and words.rstrip("s") not in demonyms() and not _by_rule(words):
        return None
    for name, certain in place_names(words):
        number = mentions.find_whole(name)
        if number < 0:
            continue
        start = int(mentions.rows[number])
        places = [
            (entity, share)
            for place, (entity, share) in enumerate(_whole(number, mentions))
            if certain or (mentions.entity_flags[start + place] & CASED and mentions.is_place(entity))
        ]
        if places:
            following = atoms[last + 1] if last + 1 < len(atoms) else ""
            noun = (bool(following) and following not in FUNCTION_WORDS) or (first > 0 and atoms[first - 1] == "the")
            noun = noun and not _of_language(following, words, mentions)
            return OtherForm(first, last, ADJECTIVE, number, CERTAIN if certain else RULE, tuple(places), noun)
    return None


def _by_rule(words: str) -> bool:
    """Whether several words may be an adjective by the rules: the last has an ending of adjectives of places."""
    return words.endswith(("an", "ans", "ese", "ish", "er", "ers"))


def _whole(number: int, mentions: MentionDictionary) -> list[tuple[int, float]]:
    start = int(mentions.rows[number])
    pairs = mentions.candidates(number, 10)
    return [pair for index, pair in enumerate(pairs) if not mentions.entity_flags[start + index] & PART]


def _of_language(following: str, words: str, mentions: MentionDictionary) -> bool:
    """Whether the word after an adjective belongs to what has the adjective as its name, as in `French language`."""
    if following.startswith(_SPEECH):
        return True
    number = mentions.find_whole(words)
    if number < 0:
        return False
    entity = int(mentions.entities[int(mentions.rows[number])])
    texts = [mentions.labels[entity], *(mentions.labels[t] for t in mentions.types_of(entity))]
    return any(word[:STEM] == following[:STEM] for text in texts for word in fold(text).split())
