"""What breaks ties between entities of one name: words that they share with the text, and likeness of encoded texts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from kgqa_core.linking.fold import fold, is_unspaced
from kgqa_core.linking.mentions import MentionDictionary
from kgqa_core.linking.words import FUNCTION_WORDS
from kgqa_core.nn.vectors import ONE, Vectors, dots

if TYPE_CHECKING:
    from kgqa_core.nn.sentence_encoder import SentenceEncoder

STEM = 5
"""Letters in which two words agree that count as the same: `directed` and `director`."""
ROLES = 12
"""Relations that are named in the encoded description of an entity."""
MAX_TOKENS = 96
"""Tokens of a text that the encoder reads."""
MAX_VECTORS = 1 << 14
"""Vectors of texts that are held in memory."""


class Context:
    """Compares texts with the graph's facts about an entity."""

    def __init__(self, mentions: MentionDictionary, encoder: SentenceEncoder | None = None) -> None:
        self.mentions, self._encoder = mentions, encoder
        self._vectors: dict[str, Vectors] = {}
        self._role_stems = lru_cache(maxsize=1 << 14)(self._stems_of_role)

    def shared_words(self, text: str, entities: Sequence[int]) -> list[tuple[float, float]]:
        """(share of the words of its types, number of words of its relations) that stand in a text, of each entity.

        text: that around the mention.
        """
        stems = _stems(fold(text))
        results = []
        for entity in entities:
            types = [_stems(fold(self.mentions.labels[t])) for t in self.mentions.types_of(entity)]
            by_type = max((len(words & stems) / len(words) for words in types if words), default=0.0)
            roles: set[str] = set()
            for role in self.mentions.roles_of(entity):
                roles |= self._role_stems(role % max(self.mentions.meta["relations"], 1))
            results.append((by_type, float(len(roles & stems))))
        return results

    def likeness(self, text: str, entities: Sequence[int]) -> list[float]:
        """Cosine of the encoded text and the encoded description of each entity; 0 without encoder."""
        if self._encoder is None:
            return [0.0] * len(entities)
        texts = [text, *(self.describe(entity) for entity in entities)]
        if len(self._vectors) > MAX_VECTORS:
            self._vectors.clear()
        if new := [one for one in dict.fromkeys(texts) if one not in self._vectors]:
            self._vectors.update(zip(new, self._encoder.encode(new), strict=True))
        vectors = np.stack([self._vectors[one] for one in texts])
        cosines: list[float] = (dots(vectors[1:], vectors[:1])[:, 0] / ONE**2).tolist()
        return cosines

    def describe(self, entity: int) -> str:
        """An entity in words: its label, types and relations."""
        mentions = self.mentions
        types = ", ".join(mentions.labels[t] for t in mentions.types_of(entity)[:3])
        relations = dict.fromkeys(
            mentions.role_words[role % mentions.meta["relations"]] for role in mentions.roles_of(entity)
        )
        parts = [mentions.labels[entity], types, mentions.descriptions[entity], ", ".join(list(relations)[:ROLES])]
        return "; ".join(part for part in parts if part)

    def _stems_of_role(self, role: int) -> frozenset[str]:
        return _stems(self.mentions.role_words[role])


def _stems(folded: str) -> frozenset[str]:
    """Beginnings of words that are none of grammar; pairs of characters where words are not spaced."""
    results: set[str] = set()
    for word in folded.split():
        if any(map(is_unspaced, word)):
            results.update(word[place : place + 2] for place in range(len(word) - 1))
        elif word not in FUNCTION_WORDS and len(word) > 2:
            results.add(word[:STEM])
    return frozenset(results)
