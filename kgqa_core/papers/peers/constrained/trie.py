"""The paths of the graph around topics as a trie of tokens that grows where a decoder goes (Luo et al. 2024, KG-Trie).

A path is written `Avalonia -> capital -> Zweib <- born in <- Ann Alder`: `->` follows a triple, `<-` goes against it.
It is tokenised in segments (a topic, then a relation with its arrows, then an entity, and so on), each as it stands
behind a text, so that the trie of a segment is built when, and only when, a decoder reaches it: whatever a graph's
size, a search expands the rows that its paths touch.  Names that several entities share, or tokens that several names
share, are one branch, and its entities go on together.  Where a name ends and another goes on, both are followed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from kgqa_core.papers.peers.agent.operations import NamedGraph

ANCHOR = ":"
"""Text before a segment when it is tokenised, so that it is read as one behind a text."""


class SegmentTokens:
    """Token ids of segments by a tokenizer of transformers, each computed once."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._anchor = self._ids([ANCHOR])[0]
        self._known: dict[str, tuple[int, ...]] = {}

    def __call__(self, texts: Sequence[str]) -> list[tuple[int, ...]]:
        """The tokens of each text."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._known]
        if missing:
            for text, ids in zip(missing, self._ids([ANCHOR + text for text in missing]), strict=True):
                whole = ids[: len(self._anchor)] == self._anchor
                tokens = ids[len(self._anchor) :] if whole else self._ids([text])[0]
                self._known[text] = tuple(tokens)
        return [self._known[text] for text in texts]

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        ids: list[list[int]] = self._tokenizer(list(texts), add_special_tokens=False, verbose=False)["input_ids"]
        return ids


@dataclass(eq=False, slots=True)
class TrieNode:
    """A node of the trie of one segment.  branch: what has been written when a segment ends here."""

    children: dict[int, TrieNode] = field(default_factory=dict)
    branch: Branch | None = None


class Branch:
    """What was written up to the end of a segment: entities that the path is at, or relations that it will follow.

    before: the branch of the segment before; None for topics.  entities, relations: those that share the text; one of
    the two is empty.  final: whether a path may end here.  hop: edges on the way.
    """

    def __init__(
        self,
        grow: Callable[[Branch], TrieNode | None],
        text: str,
        before: Branch | None = None,
        entities: tuple[int, ...] = (),
        relations: tuple[int, ...] = (),
    ) -> None:
        self._grow, self.text, self.before = grow, text, before
        self.entities, self.relations = entities, relations
        self.hop: int = (before.hop if before else 0) + bool(entities and before)

    @property
    def final(self) -> bool:
        """Whether a path may end here."""
        return bool(self.entities) and self.before is not None

    @cached_property
    def following(self) -> TrieNode | None:
        """The trie of the next segment, built at first use; None where nothing follows."""
        return self._grow(self)

    @property
    def line(self) -> list[Branch]:
        """The branches of the path, the topic first."""
        return [*(self.before.line if self.before else []), self]

    def __str__(self) -> str:
        return "".join(branch.text for branch in self.line)


@dataclass(frozen=True, slots=True)
class TrieState:
    """Where a written prefix has led to: the nodes that may go on, and the branches that end exactly here."""

    nodes: tuple[TrieNode, ...]
    ended: tuple[Branch, ...] = ()


class TrieConstraint:
    """A constraint of tokens by tries that follow each other.  start: the trie of the first segment."""

    def __init__(self, start: TrieNode) -> None:
        self._states: dict[tuple[int, ...], TrieState | None] = {(): TrieState((start,))}

    def state(self, prefix: tuple[int, ...]) -> TrieState | None:
        """Where a prefix leads to; None for one that no path has."""
        if prefix not in self._states:
            before = self.state(prefix[:-1])
            self._states[prefix] = None if before is None else _step(before, prefix[-1])
        return self._states[prefix]

    def allowed(self, prefix: tuple[int, ...]) -> Collection[int]:
        """Tokens that may follow a prefix."""
        state = self.state(prefix)
        return sorted({token for node in state.nodes for token in node.children}) if state is not None else ()

    def accepts(self, written: tuple[int, ...]) -> bool:
        """Whether a path may end here."""
        return bool(self.branches(written))

    def branches(self, written: tuple[int, ...]) -> tuple[Branch, ...]:
        """The ends of all paths that are written so."""
        state = self.state(written)
        return tuple(branch for branch in state.ended if branch.final) if state is not None else ()


def _step(state: TrieState, token: int) -> TrieState | None:
    reached = [node.children[token] for node in state.nodes if token in node.children]
    if not reached:
        return None
    ended = tuple(node.branch for node in reached if node.branch is not None)
    follow = [following for branch in ended if (following := branch.following) is not None]
    return TrieState((*reached, *follow), ended)


def build_trie(branches: Iterable[tuple[tuple[int, ...], Branch]]) -> TrieNode:
    """The trie of a segment from the tokens of each branch; tokens that are equal must be of one branch."""
    root = TrieNode()
    for tokens, branch in branches:
        node = root
        for token in tokens:
            node = node.children.setdefault(token, TrieNode())
        node.branch = branch
    return root


class GraphTrie:
    """The paths of a graph from some topics, of one to `hops` edges, none of which visits an entity twice.

    max_edges: put into the trie along the relations of one text from the same branch; `truncated` counts the rest.
    """

    def __init__(
        self, view: NamedGraph, tokens: SegmentTokens, topics: Sequence[int], hops: int, max_edges: int
    ) -> None:
        self.view, self.tokens, self.hops, self.max_edges = view, tokens, hops, max_edges
        self.truncated = 0
        starts, stops = view.dkg.row_bounds(list(topics))
        leading = [topic for topic, start, stop in zip(topics, starts, stops, strict=True) if stop > start]
        self.start = self._entities(None, leading, "")

    @property
    def empty(self) -> bool:
        """Whether there is no path at all."""
        return not self.start.children

    def constraint(self) -> TrieConstraint:
        """The paths as a constraint of tokens."""
        return TrieConstraint(self.start)

    def _entities(self, before: Branch | None, entities: Sequence[int], space: str) -> TrieNode:
        names = self.view.entity_names(entities)
        texts = {entity: space + (" ".join(names[entity].split()) or str(entity)) for entity in entities}
        return self._trie(before, texts, lambda text, ids: Branch(self._after_entities, text, before, entities=ids))

    def _after_entities(self, branch: Branch) -> TrieNode | None:
        """The trie of the relations that lead on from a branch of entities."""
        if branch.hop >= self.hops:
            return None
        dkg = self.view.dkg
        relations: set[int] = set()
        for edges in self._edges(branch):
            relations.update(np.unique(dkg.rel[edges]).tolist())
        texts = {relation: self._arrows(relation) for relation in sorted(relations)}
        if not texts:
            return None
        return self._trie(
            branch, texts, lambda text, ids: Branch(self._after_relations, text, branch, relations=ids)
        )  # fmt: skip

    def _after_relations(self, branch: Branch) -> TrieNode | None:
        """The trie of the entities that the relations of a branch lead to."""
        assert branch.before is not None
        dkg = self.view.dkg
        edges_of_relations = [edges[np.isin(dkg.rel[edges], branch.relations)] for edges in self._edges(branch.before)]
        tails = np.unique(np.concatenate([dkg.tail[edges] for edges in edges_of_relations]))
        self.truncated += max(0, len(tails) - self.max_edges)
        return self._entities(branch, tails[: self.max_edges].tolist(), " ")

    def _edges(self, branch: Branch) -> list[np.ndarray]:
        """Edges out of each entity of a branch, but those to entities that the path has visited."""
        visited = [entity for node in branch.line for entity in node.entities]
        found = []
        for entity in branch.entities:
            start, stop = (int(bound) for bound in self.view.dkg.row_bounds(entity))
            edges = np.arange(start, stop, dtype=np.int64)
            found.append(edges[~np.isin(self.view.dkg.tail[start:stop], visited)])
        return found

    def _arrows(self, relation: int) -> str:
        forward = relation < self.view.dkg.relations
        name = self.view.relation_names[relation if forward else relation - self.view.dkg.relations]
        return f" -> {name} ->" if forward else f" <- {name} <-"

    def _trie(
        self, before: Branch | None, texts: Mapping[int, str], make: Callable[[str, tuple[int, ...]], Branch]
    ) -> TrieNode:
        groups: dict[tuple[int, ...], list[int]] = {}
        written = self.tokens(list(texts.values()))
        for number, tokens in zip(texts, written, strict=True):
            groups.setdefault(tokens, []).append(number)
        branches = [(tokens, make(texts[ids[0]], tuple(ids))) for tokens, ids in groups.items() if tokens]
        if before is None:  # a topic that leads to nothing but itself begins no path
            branches = [(tokens, branch) for tokens, branch in branches if branch.following is not None]
        return build_trie(branches)

    def triples(self, branch: Branch) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The triples of the paths that end in a branch, in order of hop, and the entities that they end in.

        Of entities that share a name only those count that a whole path leads through.
        """
        line = branch.line
        hops: list[np.ndarray] = []
        reach = np.array(line[0].entities, dtype=np.int64)
        for relations, entities in zip(line[1::2], line[2::2], strict=True):
            edges = self._between(reach, relations.relations, entities.entities)
            hops.append(edges)
            reach = np.unique(self.view.dkg.tail[edges]).astype(np.int64)
        ends = tuple(reach.tolist())
        kept_edges: list[np.ndarray] = []
        for edges in reversed(hops):
            reaching = edges[np.isin(self.view.dkg.tail[edges], reach)]
            kept_edges.append(reaching)
            reach = np.unique(self.view.dkg.source_of(reaching))
        triples = [triple for edges in reversed(kept_edges) for triple in self.view.dkg.triple_of(edges).tolist()]
        return tuple(dict.fromkeys(triples)), ends

    def _between(self, sources: np.ndarray, relations: Sequence[int], targets: Sequence[int]) -> np.ndarray:
        """Edges from some entities along some directed relations to some entities, ascending."""
        dkg, edges = self.view.dkg, [np.empty(0, dtype=np.int64)]
        for source in sources.tolist():
            start, stop = (int(bound) for bound in dkg.row_bounds(source))
            allowed = np.isin(dkg.rel[start:stop], relations) & np.isin(dkg.tail[start:stop], targets)
            edges.append(start + np.flatnonzero(allowed))
        return np.concatenate(edges)


def names_constraint(tokens: SegmentTokens, names: Mapping[int, str]) -> TrieConstraint:
    """The names of entities as a constraint: exactly one of them is written.  names: by entity."""
    first = Branch(lambda branch: None, "")
    groups: dict[tuple[int, ...], list[int]] = {}
    written = tokens([f" {name}" for name in names.values()])
    for entity, own in zip(names, written, strict=True):
        groups.setdefault(own, []).append(entity)
    return TrieConstraint(
        build_trie(
            (own, Branch(lambda branch: None, names[ids[0]], first, entities=tuple(ids)))
            for own, ids in groups.items()
            if own
        )
    )
