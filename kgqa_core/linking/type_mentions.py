"""Types as mentions: whether words are a common noun for a kind of entities, as `countries` and `movies`."""

from __future__ import annotations

from kgqa_core.linking.english import singulars
from kgqa_core.linking.mentions import ALIAS, CASED, LABEL, NAMED_TYPE, TYPE, MentionDictionary


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
