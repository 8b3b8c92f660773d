"""The tagger: mentions of a text, the entities that each may mean, and how sure it is (after TAGME, Ferragina 2010).

Every name of the dictionary that occurs is a mention, overlapping ones too; the longest that are likely to be meant as
names are chosen.  The candidates of a mention are voted for by those of all other chosen mentions, through their
relatedness; how the name is written, commonness and context weigh in.  ρ is the mean of the link probability and of
the coherence with the entities that were chosen for the other mentions, which is 0 where there is no other.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kgqa_core.config import LinkingOptions
from kgqa_core.errors import GraphMismatch, InputError
from kgqa_core.kg.store import KgStore
from kgqa_core.linking.fold import fold, is_unspaced
from kgqa_core.linking.mentions import LinkCandidate, Mention, MentionDictionary
from kgqa_core.linking.spots import SpottedName, find_spots
from kgqa_core.linking.type_mentions import is_type_word
from kgqa_core.linking.words import FUNCTION_WORDS
from kgqa_core.nn.vectors import ONE, Vectors, dots
from kgqa_core.question_limits import CHARACTERS, length_fault

if TYPE_CHECKING:
    from kgqa_core.linking.service import LinkerClient
    from kgqa_core.nn.sentence_encoder import SentenceEncoder

VOTE, EXACT, TYPE, ROLE, LIKE = 4.0, 2.0, 0.5, 0.6, 4.0
"""What a candidate's score gains beside the logarithm of its commonness: by a vote of 1, by being written as its label,
by words of its type in the text, by each word of its relations in it, by a cosine of 1 of encoded texts."""
VOTERS = 5
"""Candidates of a mention that vote."""
NEAR = 25
"""Chosen mentions on each side whose entities count for a mention: all of a question, the nearest of a long text."""
AROUND = 500
"""Characters on each side of a mention that are its context."""
APPOSITION = 0.3
"""Factor of ρ where a mention only qualifies the one before it."""
FALLBACK = 0.02
"""Link probability that a mention needs to be selected although no entity reaches the threshold."""
MARKS = 3
"""Brackets and quotes of a label that may stand around a mention."""
SAMPLED = 500
"""Entities whose keys are compared when a dictionary is opened for a graph."""
LINKERS = frozenset({"的", "の"})
"""Words that may stand between two names side by side."""
STEM = 5
"""Letters in which two words agree that count as the same: `directed` and `director`."""
ROLES = 12
"""Relations that are named in the encoded description of an entity."""
MAX_TOKENS = 96
"""Tokens of a text that the encoder reads."""
MAX_VECTORS = 1 << 14
"""Vectors of texts that are held in memory."""
LONGEST_TEXT = 100_000
"""Characters of a text that is linked, which may be longer than a question."""


def select_entities(mentions: Sequence[Mention], options: LinkingOptions) -> list[tuple[LinkCandidate, Mention]]:
    """The best candidates of chosen mentions with ρ ≥ threshold, best first, ties by id: what a text is about.

    Those of the text itself come before those of earlier turns, which may be named more clearly.  Each entity once,
    `top` at most.  Words for types are left out where there is another.  With the option `fallback` the best mention
    is selected where there is none.
    """
    sure = [
        (mention.candidates[0], mention)
        for mention in mentions
        if mention.chosen and mention.candidates[0].rho >= options.threshold
    ]
    sure = [pair for pair in sure if not pair[1].type_word] or sure
    likely = [mention for mention in mentions if mention.link_probability >= FALLBACK]
    if not sure and likely and options.fallback:
        mention = min(likely, key=lambda m: (m.turn, -m.link_probability, m.start - m.end, m.start))
        return [(mention.candidates[0], mention)]
    sure.sort(key=lambda pair: (pair[1].turn > 0, -pair[0].rho, pair[0].entity))
    first: dict[int, tuple[LinkCandidate, Mention]] = {}
    for candidate, mention in sure:
        first.setdefault(candidate.entity, (candidate, mention))
    return list(first.values())[: options.top]


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
            self._vectors = {}
        known = self._vectors  # which another thread may replace
        if new := [one for one in dict.fromkeys(texts) if one not in known]:
            known.update(zip(new, self._encoder.encode(new), strict=True))
        vectors = np.stack([known[one] for one in texts])
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
            results.update(word[index : index + 2] for index in range(len(word) - 1))
        elif word not in FUNCTION_WORDS and len(word) > 2:
            results.add(word[:STEM])
    return frozenset(results)


class Tagger:
    """Links texts to the entities of one graph; the same text is always linked alike."""

    def __init__(self, mentions: MentionDictionary, options: LinkingOptions, context: Context | None = None) -> None:
        self.mentions, self.options = mentions, options
        self._context = context if options.context != "none" else None
        self._service: LinkerClient | None = None
        if options.service is not None:
            from kgqa_core.linking.service import LinkerClient

            self._service = LinkerClient(options.service, mentions)

    def link(self, text: str, dialogue: Sequence[tuple[str, str]] = ()) -> list[Mention]:
        """Mentions in order of turn and place, the text's own first; overlapping ones included.

        Names of all languages of the graph are looked for.
        dialogue: earlier turns as (role, text), oldest first; their mentions stay candidates, weaker with distance.
        Of these the latest are read, of `question_limits.CHARACTERS` in all.
        Raises InputError for a text of more than `LONGEST_TEXT` characters, EndpointError where the linker of
        `linking.service` does not answer.
        """
        earlier = [turn for _, turn in reversed(dialogue)][: self.options.turns]
        read = [*accumulate(map(len, earlier))]
        turns = [text, *earlier[: bisect_right(read, CHARACTERS)]]
        if fault := length_fault("the text", text, LONGEST_TEXT):
            raise InputError(fault)
        spots = [
            spot
            for turn, turn_text in enumerate(turns)
            for spot in find_spots(turn_text, turn, self.mentions, self.options.candidates, self.options.typos)
        ]
        own = self._decide(spots, turns)
        return own if self._service is None else self._service.link(turns, own, self.options.turn_weight)

    def select(self, mentions: Sequence[Mention]) -> list[tuple[int, float]]:
        """(entity, ρ) of the best candidates of mentions that `link` chose with ρ ≥ threshold, best first, ties by id.

        With the option `fallback` the best mention is selected where there is none.
        """
        return [(candidate.entity, candidate.rho) for candidate, _ in select_entities(mentions, self.options)]

    # -- parts -------------------------------------------------------------------------------------------------

    def _decide(self, spots: Sequence[SpottedName], turns: Sequence[str]) -> list[Mention]:
        chosen = sorted((spot for spot in spots if spot.chosen), key=_place)
        near = {spot: _nearest(spot, chosen) for spot in spots}
        scores = {spot: self._scores(spot, near[spot], turns[spot.turn]) for spot in spots}
        order = {
            spot: sorted(range(len(scores[spot])), key=lambda n: (-scores[spot][n], spot.candidates[n][0]))
            for spot in spots
        }
        best = {spot: spot.candidates[order[spot][0]][0] for spot in spots}
        nouns = {
            spot: is_type_word(fold(turns[spot.turn][spot.start : spot.end]), spot.name, self.mentions)
            for spot in spots
        }
        names = [spot for spot in chosen if not nouns[spot]]
        beside = self._appositions(names, best, turns) if self.options.appositions == "first" else set()
        mentions = []
        for spot in spots:
            others = [best[other] for other in near[spot] if best[other] != best[spot]]
            factor = self.options.turn_weight**spot.turn * (APPOSITION if spot in beside else 1.0)
            coherence = self._coherence([entity for entity, _ in spot.candidates], others)
            top = scores[spot][order[spot][0]]
            candidates = tuple(
                LinkCandidate(
                    entity := spot.candidates[n][0],
                    self.mentions.keys[entity],
                    self.mentions.labels[entity],
                    round(spot.candidates[n][1], 6),
                    round(math.exp(scores[spot][n] - top) * (spot.probability + coherence[n]) / 2 * factor, 6),
                )
                for n in order[spot]
            )
            mentions.append(
                Mention(
                    start=spot.start,
                    end=spot.end,
                    text=turns[spot.turn][spot.start : spot.end],
                    turn=spot.turn,
                    candidates=candidates,
                    chosen=spot.chosen,
                    link_probability=round(spot.probability, 6),
                    coherence=round(coherence[order[spot][0]], 6),
                    errors=spot.errors,
                    kind=spot.kind,
                    type_word=nouns[spot],
                )
            )
        return mentions

    def _coherence(self, entities: Sequence[int], others: Sequence[int]) -> list[float]:
        """Mean relatedness of each entity with the entities of the other mentions; 0 where there are none."""
        if not others:
            return [0.0] * len(entities)
        return [sum(row) / len(others) for row in self.mentions.relatednesses(entities, others)]

    def _scores(self, spot: SpottedName, near: Sequence[SpottedName], text: str) -> list[float]:
        """What speaks for each candidate of a mention; only differences matter."""
        if len(spot.candidates) == 1:
            return [0.0]
        entities = [entity for entity, _ in spot.candidates]
        others = [other for other in near if other.name != spot.name]
        voters = [voter for other in others for voter in other.candidates[:VOTERS]]
        related = self.mentions.relatednesses(entities, [voter for voter, _ in voters])
        scores = []
        for (entity, commonness), row in zip(spot.candidates, related, strict=True):
            votes = sum(value * weight for value, (_, weight) in zip(row, voters, strict=True))
            scores.append(
                math.log(max(commonness, 1e-6))
                + VOTE * votes / max(len(others), 1)
                + EXACT * _written(self.mentions.labels[entity], text, spot)
            )
        if self._context is not None:
            before, after = text[max(0, spot.start - AROUND) : spot.start], text[spot.end : spot.end + AROUND]
            for n, (by_type, by_role) in enumerate(self._context.shared_words(f"{before} {after}", entities)):
                scores[n] += TYPE * by_type + ROLE * by_role
            whole = before + text[spot.start : spot.end] + after
            for n, likeness in enumerate(self._context.likeness(whole, entities)):
                scores[n] += LIKE * likeness
        return scores

    def _appositions(
        self, chosen: Sequence[SpottedName], best: dict[SpottedName, int], turns: Sequence[str]
    ) -> set[SpottedName]:
        """Mentions beside an earlier one whose entity is a neighbour of theirs: they only qualify it."""
        results: set[SpottedName] = set()
        head = chosen[0] if chosen else None
        for spot, following in zip(chosen, chosen[1:], strict=False):
            head = spot if spot not in results else head
            gap = turns[spot.turn][spot.end : following.start] if spot.turn == following.turn else "-"
            near = not any(sign.isalnum() and sign not in LINKERS for sign in gap) and spot.turn == following.turn
            if near and head is not None and best[following] in self.mentions.neighbours_of(best[head]):
                results.add(following)
        return results


def _place(spot: SpottedName) -> tuple[int, int]:
    return spot.turn, spot.start


def _nearest(spot: SpottedName, chosen: Sequence[SpottedName]) -> list[SpottedName]:
    """The chosen mentions but this one, NEAR on each side at most.  chosen: in order of turn and place, apart."""
    before = bisect_left(chosen, _place(spot), key=_place)
    after = before + (before < len(chosen) and chosen[before] is spot)
    return [*chosen[max(0, before - NEAR) : before], *chosen[after : after + NEAR]]


def _written(label: str, text: str, spot: SpottedName) -> float:
    """How exactly a mention is written as a label: 1 as it is, more with brackets and quotes too, 0 otherwise."""
    if not label or label not in text[max(0, spot.start - MARKS) : spot.end + MARKS]:
        return 0.25 if label.casefold() == text[spot.start : spot.end].casefold() else 0.0
    return 1.0 + 0.5 * (len(label) > spot.end - spot.start)


def _same_entities(mentions: MentionDictionary, store: KgStore) -> bool:
    """Whether a sample of entities, evenly from all ids, has the keys that the graph gives them."""
    number = len(mentions.keys)
    ids = sorted({index * (number - 1) // SAMPLED for index in range(SAMPLED + 1)}) if number else []
    keys = store.entity_keys([i for i in ids if mentions.keys[i]])
    return all(keys.get(i) == mentions.keys[i] for i in ids if mentions.keys[i])


def open_tagger(mentions: Path, kg: Path, options: LinkingOptions | None = None) -> Tagger:
    """The tagger of a mention dictionary and the graph that it was made of.

    Raises ArtifactError where either is missing, GraphMismatch when they do not belong together, ModelError for an
    encoder that cannot be loaded.
    """
    options = options or LinkingOptions()
    opened = MentionDictionary(mentions)
    with KgStore.open(kg) as store:
        if opened.meta["graph"] != store.counts() or not _same_entities(opened, store):
            raise GraphMismatch(
                f"the mention dictionary {mentions} was made of another graph than {kg}; build it again from that graph"
            )
    encoder = None
    if options.context == "encoder":
        from kgqa_core.nn.sentence_encoder import SentenceEncoder

        encoder = SentenceEncoder(options.encoder, section="linking", max_tokens=MAX_TOKENS)
    return Tagger(opened, options, Context(opened, encoder))
