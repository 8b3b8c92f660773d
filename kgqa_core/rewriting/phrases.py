"""How an English sentence says a relation, found from the words of its label.

Rules, not a dictionary of any one graph: the last part of a dotted or slashed label, words for snake_case, kebab-case
and camelCase; then participles (`directed by`), verbs (`shares border with`), roles (`member of`), else a noun.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from kgqa_core.kg.names import CAMEL
from kgqa_core.types import INVERSE

_DOTTED = re.compile(r"[^\s.]+(\.[^\s.]+)+")
_PREPOSITIONS = frozenset(
    "of in by at to from for with on after as near under during against into about within between through over".split()
)
_IRREGULAR = {
    "written": "wrote", "drawn": "drew", "made": "made", "held": "held", "led": "led", "built": "built", "won": "won",
    "sung": "sang", "sold": "sold", "known": "knew", "spoken": "spoke", "taught": "taught", "bought": "bought",
    "worn": "wore", "given": "gave", "seen": "saw", "run": "ran", "begun": "began", "told": "told", "shot": "shot",
    "born": "bore", "set": "set", "found": "found", "driven": "drove", "flown": "flew", "taken": "took",
    "chosen": "chose", "beaten": "beat", "sent": "sent", "left": "left", "kept": "kept", "cast": "cast",
}  # fmt: skip
"""Participles that do not end in -ed, with the past tense."""
_STATES = frozenset("located based situated contained known used named set found headquartered bordered".split())
"""Participles of what still is, written in the present."""
_INTRANSITIVE = frozenset(
    "appeared lived died worked played starred studied graduated participated performed competed fought served "
    "belonged ruled happened occurred existed acted married".split()
)
_ADJECTIVES = frozenset("seed reed speed need feed weed breed creed bleed hundred".split())
_VERBS = frozenset(
    "is was are were has shares follows replaces contains borders plays lives works owns speaks uses wears occupies "
    "depicts produces appears belongs leads operates manages supports includes treats causes affects studies practices "
    "succeeds precedes flows crosses connects serves represents employs sponsors stars".split()
)
_AMBIGUOUS = frozenset("works plays studies stars causes supports practices serves leads".split())
"""Verbs that are nouns too: a verb only where more words follow."""
_ONE_OF_MANY = frozenset(
    "member part instance subclass subproperty type kind student child example branch subsidiary relative resident "
    "citizen subdivision employee author participant sibling winner holder alumnus graduate".split()
)
_IRREGULAR_PLURALS = {
    "person": "people", "child": "children", "man": "men", "woman": "women", "spouse": "spouses",
    "series": "series", "species": "species", "headquarters": "headquarters", "cast": "cast", "staff": "staff",
    "wife": "wives", "language": "languages",
}  # fmt: skip
_GLUED = {
    "containedby": "contained by", "citytown": "city or town", "bornin": "born in", "sameas": "same as",
    "adjoin s": "adjoining places", "spouse s": "spouses", "make s": "makes", "owner s": "owners",
    "sibling s": "siblings", "arena stadium": "arena or stadium", "state province region": "state or region",
}  # fmt: skip
_SPOKEN = {"spoken": "in", "used": "in", "located": "in"}
"""Preposition after a noun and one of these participles; else `by`."""


@dataclass(frozen=True, slots=True)
class RelationPhrase:
    """One relation in words.

    A verb phrase says head and tail with `one` (one head) or `many` (several); `active` says tail and head the other
    way round, where there is such a verb.  A noun phrase is `The {noun}{link}{head}{rest} is {tail}`.
    """

    noun: str = ""
    link: str = " of "
    rest: str = ""
    one: str = ""
    many: str = ""
    active: str = ""

    @property
    def is_verb(self) -> bool:
        """Whether the relation is expressed by a verb."""
        return bool(self.one)


def words(relation: str) -> str:
    """A relation's label as plain words, without the mark of an inverse.

    >>> words("<inv>-film.film.directed_by"), words("/people/person/placeOfBirth"), words("ISO code")
    ('directed by', 'place of birth', 'ISO code')
    """
    text = relation.removeprefix(INVERSE).strip()
    if "/" in text and " " not in text:
        text = text.rstrip("/").rpartition("/")[2]
    if _DOTTED.fullmatch(text):
        text = text.rpartition(".")[2]
    text = text.rpartition("#")[2] if " " not in text else text
    if " " not in text:
        text = CAMEL.sub(" ", text).replace("_", " ")
        text = re.sub(r"(?<=[a-z])-(?=[a-z])", " ", text)
    text = " ".join(word if word[1:] != word[1:].lower() else word[:1].lower() + word[1:] for word in text.split())
    return _GLUED.get(text, text) or relation.strip() or "relation"


def plural(noun: str) -> str:
    """The plural of a noun phrase; its head is the word before the first preposition or participle.

    >>> plural("place of birth"), plural("country"), plural("languages spoken"), plural("ISO code")
    ('places of birth', 'countries', 'languages spoken', 'ISO codes')
    """
    parts = noun.split()
    if not parts:
        return ""
    head = _head(parts)
    word = parts[head]
    if word in _IRREGULAR_PLURALS:
        word = _IRREGULAR_PLURALS[word]
    elif not is_plural(word):
        if re.search(r"[^aeiou]y$", word):
            word = word[:-1] + "ies"
        else:
            word += "es" if re.search(r"(s|x|z|ch|sh)$", word) else "s"
    return " ".join([*parts[:head], word, *parts[head + 1 :]])


def is_plural(noun: str) -> bool:
    """Whether the head of a noun phrase looks like a plural."""
    parts = noun.split()
    word = parts[_head(parts)] if parts else ""
    return word in _IRREGULAR_PLURALS.values() or (word.endswith("s") and not word.endswith(("ss", "us", "is", "ics")))


@lru_cache(maxsize=4096)
def phrase(relation: str) -> RelationPhrase:
    """How a relation is expressed in English."""
    text = words(relation).removeprefix("the ")
    parts = text.split()
    if len(parts) > 1 and parts[0] in ("has", "have", "in", "hasA"):
        text = " ".join(parts[1:])
        return _noun(text)
    first, last = parts[0], parts[-1]
    if len(parts) > 1 and is_participle(first) and parts[1] in _PREPOSITIONS:
        return _participle(parts)
    if first in _VERBS and not (first in _AMBIGUOUS and (len(parts) == 1 or is_participle(parts[1]))):
        return _verb(parts)
    if len(parts) > 1 and parts[1] == "of" and (len(parts) == 2 or first in _ONE_OF_MANY - {"type", "kind"}):
        return _role(parts)
    if last in ("of", "in") and len(parts) == 2 and not first.endswith("s"):
        return _role(parts)
    return _noun(text)


def _noun(text: str) -> RelationPhrase:
    parts = text.split()
    if len(parts) > 1 and parts[-1] in _PREPOSITIONS:
        return RelationPhrase(noun=text, link=" for ")
    if len(parts) > 1 and is_participle(parts[-1]):
        return RelationPhrase(noun=text, link=f" {_SPOKEN.get(parts[-1], 'by')} ")
    if " in " in text:
        noun, _, rest = text.partition(" in ")
        return RelationPhrase(noun=noun, rest=f" in {rest}")
    return RelationPhrase(noun=text)


def _participle(parts: list[str]) -> RelationPhrase:
    """`directed by`, `located in`, `located in the region`, `portrayed in films`, `born in`."""
    first = parts[0]
    tail = " ".join(parts[1:])
    if len(parts) > 2 and parts[2] != "the" and parts[-1] not in _PREPOSITIONS:
        tail = f"{parts[1]} the {' '.join(parts[2:])}"
    if first in _INTRANSITIVE:
        return RelationPhrase(one=f"{first} {tail}", many=f"{first} {tail}")
    is_, are = ("is", "are") if first in _STATES else ("was", "were")
    active = ""
    if parts[1:] == ["by"] and first != "born":
        active = "contains" if first == "contained" else _IRREGULAR.get(first, first)
    return RelationPhrase(one=f"{is_} {first} {tail}", many=f"{are} {first} {tail}", active=active)


def _verb(parts: list[str]) -> RelationPhrase:
    """`shares border with`, `is part of`, `uses`."""
    first, rest = parts[0], " ".join(parts[1:])
    base = {"is": "are", "was": "were", "are": "are", "were": "were"}.get(first)
    if base is None:
        base = first[:-3] + "y" if re.search(r"[^aeiou]ies$", first) else first[:-1]
        base = first[:-2] if re.search(r"(sses|ches|shes|xes|zes|oes)$", first) else base
    if rest and parts[-1] not in _PREPOSITIONS and first not in ("is", "was", "are", "were", "has"):
        rest = f"{rest}" if parts[1] in ("the", "as") else _with_article(parts[1:])
    return RelationPhrase(one=f"{first} {rest}".strip(), many=f"{base} {rest}".strip())


def _with_article(parts: list[str]) -> str:
    if parts[0] in _PREPOSITIONS and len(parts) > 1:
        return f"{parts[0]} the {' '.join(parts[1:])}"
    return "the " + " ".join(parts)


def _role(parts: list[str]) -> RelationPhrase:
    """`member of`, `capital of`, `part of`, `member of sports team`, `participant in`."""
    first = parts[0]
    text = " ".join(parts) if len(parts) == 2 else f"{first} {parts[1]} the {' '.join(parts[2:])}"
    if first == "part":
        return RelationPhrase(one=f"is {text}", many=f"are {text}")
    if first not in _ONE_OF_MANY:
        several = plural(" ".join(parts))
        return RelationPhrase(one=f"is the {text}", many=f"are the {several}")
    article = "an" if first[0] in "aeiou" else "a"
    several = text.replace(first, plural(first), 1)
    return RelationPhrase(one=f"is {article} {text}", many=f"are {several}")


def is_participle(word: str) -> bool:
    """Whether a word is, or looks like, a past participle."""
    return word in _IRREGULAR or (word.endswith("ed") and len(word) > 3 and word not in _ADJECTIVES)


def _head(parts: list[str]) -> int:
    """Place of the head of a noun phrase."""
    for index, word in enumerate(parts[1:], start=1):
        after = parts[index + 1] if index + 1 < len(parts) else "of"
        participle = is_participle(word) and after in _PREPOSITIONS
        if word in _PREPOSITIONS or participle or parts[index - 1].endswith(","):
            return index - 1
    return len(parts) - 1
