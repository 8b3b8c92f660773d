"""What is read of a relation: its label in words."""

from __future__ import annotations

import re

from kgqa_core.dkg.csr import Dkg
from kgqa_core.kg.names import CAMEL
from kgqa_core.kg.store import REMOVED

_CODE = re.compile(r"[A-Za-z]{0,3}[-_:]?\d+")


def relation_texts(dkg: Dkg) -> list[str]:
    """What is read of each forward relation: its label in words, or its key's text where it has none.

    Empty for a relation that an update removed.
    """
    return ["" if name.startswith(REMOVED) else words(name) for name in dkg.relation_names[: dkg.relations]]


def unlabelled(dkg: Dkg) -> list[str]:
    """Relations whose text is a bare code such as `P31`, of which no encoder can tell the meaning."""
    return [name for name in dkg.relation_names[: dkg.relations] if _CODE.fullmatch(name)]


def unlabelled_note(dkg: Dkg) -> str | None:
    """A sentence that counts the relations without a label; None when all have one."""
    bare = unlabelled(dkg)
    if not bare:
        return None
    return (
        f"{len(bare)} of {dkg.relations} relations have no label ({', '.join(bare[:3])}, …); their keys are read "
        "instead, which say nothing. Add labels of the relations to kg.files"
    )


def words(name: str) -> str:
    """`starred_actors` and `people.person.placeOfBirth` in words.

    >>> words("people.person.placeOfBirth")
    'people person place Of Birth'
    """
    return " ".join(CAMEL.sub(" ", re.sub(r"[_./]+", " ", name)).split()) or name
