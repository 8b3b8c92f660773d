"""Graph-constrained reasoning: a local model that can write nothing but paths of the graph (Luo et al. 2024, GCR).

The K likeliest paths from the topics are decoded under the trie of the graph; the answer is the end of the likeliest,
or the model reads the paths and answers, constrained to the names of their ends.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kgqa_core.answering.exploration import Exploration, ExplorerInputs
from kgqa_core.config import ConstrainedOptions
from kgqa_core.llm.cache import Request, ResponseCache, open_cache
from kgqa_core.llm.factory import load_model
from kgqa_core.llm.hf import HFModel
from kgqa_core.llm.hf_constrained import ConstrainedSequence, constrained_beams
from kgqa_core.llm.paid import identity_of
from kgqa_core.llm.protocol import Completion, GenerationParams
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.papers.peers.agent.operations import NamedGraph
from kgqa_core.papers.peers.constrained.trie import Branch, GraphTrie, SegmentTokens, TrieConstraint, names_constraint
from kgqa_core.store.artifacts import canonical_json
from kgqa_core.types import Question

PATHS = (
    "A reasoning path is a chain of facts of a knowledge graph that leads from a topic entity of a question to its "
    "answer.\nQuestion: {question}\nTopic entities: {topics}\nReasoning path:"
)
"""Prompt behind which paths are decoded (after Luo et al. 2024)."""

ANSWER = "Answer the question from these reasoning paths.\n{paths}\nQuestion: {question}\nAnswer:"
"""Prompt behind which the answer is decoded, one path a line, likeliest first."""

VERSION = "1"
"""Version of these wordings, and of how a path is written."""


@dataclass(frozen=True, slots=True)
class DecodedPath:
    """A path that was decoded.  triples: of all paths that are written so, by hop; ends: their last entities."""

    text: str
    relations: tuple[str, ...]
    triples: tuple[int, ...]
    ends: tuple[int, ...]
    score: float


class ConstrainedReasoner:
    """Answers by paths of the graph.  model: a local one.  cache: what was decoded before."""

    def __init__(
        self, view: NamedGraph, model: HFModel, options: ConstrainedOptions, cache: ResponseCache | None = None
    ) -> None:
        self.view, self.model, self.options = view, model, options
        self.cache = cache if cache is not None else ResponseCache()
        self.tokens = SegmentTokens(model.tokenizer)

    @classmethod
    def open(cls, inputs: ExplorerInputs) -> ConstrainedReasoner:
        """The reasoner of a profile.  Raises ModelError when its model cannot be loaded."""
        model = load_model(inputs.model, inputs.llm)
        assert isinstance(model, HFModel)
        view = NamedGraph(inputs.dkg, inputs.store, shown=1)
        return cls(view, model, inputs.section, open_cache(inputs.cache))

    def explore(self, questions: Sequence[Question], monitor: Monitor = QUIET) -> list[Exploration]:
        """One exploration per question; what was decoded is in the cache as soon as it is known."""
        explorations = []
        for number, question in enumerate(questions, start=1):
            explorations.append(self._explore(question))
            monitor.progress(number, len(questions), "questions")
        self.cache.flush()
        return explorations

    def _explore(self, question: Question) -> Exploration:
        trie = GraphTrie(
            self.view, self.tokens, tuple(dict.fromkeys(question.topic_entities)), self.options.hops,
            self.options.max_edges,
        )  # fmt: skip
        if trie.empty:
            return Exploration(question.id, "no topic")
        names = self.view.entity_names(question.topic_entities)
        prompt = PATHS.format(
            question=question.text, topics=", ".join(names[topic] for topic in question.topic_entities)
        )  # fmt: skip
        constraint = trie.constraint()
        known = [self.view.dkg.digest, list(question.topic_entities), self.options.hops, self.options.max_edges]
        written, spent = self._decode(prompt, constraint, self.options.beams, known)
        paths = [self._path(trie, constraint, sequence) for sequence in written]
        facts = tuple(dict.fromkeys(triple for path in paths for triple in path.triples))
        done = Exploration(
            question.id, "answered" if paths else "limit", facts=facts, steps=tuple(_step(path) for path in paths),
            calls=1, prompt_tokens=spent[0], completion_tokens=spent[1], operations=len(paths),
            truncated=trie.truncated > 0, weight=paths[0].score if paths else 0.0,
        )  # fmt: skip
        if not paths:
            return done
        return (
            self._from_ends(done, paths) if self.options.final == "paths" else self._from_model(done, question, paths)
        )

    def _path(self, trie: GraphTrie, constraint: TrieConstraint, sequence: ConstrainedSequence) -> DecodedPath:
        branches = constraint.branches(sequence.ids)
        grounded = [trie.triples(branch) for branch in branches]
        triples = tuple(dict.fromkeys(triple for run, _ in grounded for triple in run))
        ends = tuple(dict.fromkeys(entity for _, run in grounded for entity in run))
        return DecodedPath(str(branches[0]), _relations(branches[0]), triples, ends, sequence.score)

    def _from_ends(self, done: Exploration, paths: Sequence[DecodedPath]) -> Exploration:
        """The ends of the likeliest path, and of those that have the same relations."""
        chosen = [path for path in paths if path.relations == paths[0].relations]
        return self._with(done, [entity for path in chosen for entity in path.ends], chosen)

    def _from_model(self, done: Exploration, question: Question, paths: Sequence[DecodedPath]) -> Exploration:
        """What the model answers from the paths, constrained to names of their ends."""
        ends = dict.fromkeys(entity for path in paths for entity in path.ends)
        names = {entity: " ".join(name.split()) for entity, name in self.view.entity_names(ends).items()}
        constraint = names_constraint(self.tokens, names)
        prompt = ANSWER.format(paths="\n".join(path.text for path in paths), question=question.text)
        known = [self.view.dkg.digest, sorted(names)]
        written, spent = self._decode(prompt, constraint, max(self.options.answers, self.options.beams), known)
        chosen = [
            entity
            for sequence in written[: self.options.answers]
            for branch in constraint.branches(sequence.ids)
            for entity in branch.entities
        ]
        done = replace(
            done, calls=done.calls + 1, prompt_tokens=done.prompt_tokens + spent[0],
            completion_tokens=done.completion_tokens + spent[1],
        )  # fmt: skip
        reached = set(chosen)
        return self._with(done, chosen, [path for path in paths if reached.intersection(path.ends)])

    def _with(self, done: Exploration, answers: Sequence[int], paths: Sequence[DecodedPath]) -> Exploration:
        """The exploration with answers, the triples of some paths first in its proof."""
        listed = list(dict.fromkeys(answers))
        names, keys = self.view.entity_names(listed), self.view.store.entity_keys(listed)
        first = [triple for path in paths for triple in path.triples]
        return replace(
            done, names=tuple(names[entity] for entity in listed), keys=tuple(keys[entity] for entity in listed),
            facts=tuple(dict.fromkeys([*first, *done.facts])),
        )  # fmt: skip

    def _decode(
        self, prompt: str, constraint: TrieConstraint, beams: int, known: Sequence[object]
    ) -> tuple[list[ConstrainedSequence], tuple[int, int]]:
        """Accepted sequences and the tokens of prompt and output; from the cache where the same was decoded before.

        known: what the constraint was made of.
        """
        params = GenerationParams(max_new_tokens=self.options.max_path_tokens, num_beams=beams)
        group = hashlib.sha256(canonical_json([VERSION, *known]).encode("utf-8", "surrogatepass")).hexdigest()
        request = Request(identity_of(self.model), params, prompt, group=group)
        stored = self.cache.get([request]).get(request.key)
        if stored is not None:
            rows = json.loads(stored.completion.text)
            counted = (stored.completion.prompt_tokens, stored.completion.completion_tokens)
            return [ConstrainedSequence(tuple(ids), score) for ids, score in rows], counted
        sequences, read = constrained_beams(self.model, prompt, constraint, beams, self.options.max_path_tokens)
        text = json.dumps([[list(sequence.ids), sequence.score] for sequence in sequences])
        tokens = sum(len(sequence.ids) + 1 for sequence in sequences)
        self.cache.put(request, Completion(text, "stop", read, tokens))
        return sequences, (read, tokens)


def _relations(branch: Branch) -> tuple[str, ...]:
    return tuple(node.text for node in branch.line if node.relations)


def _step(path: DecodedPath) -> str:
    return f"{path.text} ({path.score:.3f})"
