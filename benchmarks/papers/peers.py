"""The peers that explore, with the builtin model and with an oracle in its place, so that both are told apart.

    python -m benchmarks.papers.peers --work DIR [--json OUT]

A seeded sample of Atlas' dev questions whose answers are in the graph (counts and yes/no questions are left out),
topics given, options as by default.  The oracle knows the gold relation paths and the gold answers, but acts by what
the method offers alone: it names relations, entities and paths that were shown, within the method's limits of turns,
width, beams and names of an observation, and answers with those gold answers that the method has reached.  Its score
is so an upper bound of the method on this graph, for any model.

  agent, loop     builtin: the JSON protocol, which a model of its size was never taught
  agent, beam     builtin: the likeliest of the names that are offered (one, so that its width is 1)
  gcr, paths      the ends of the likeliest path; oracle: gold paths, as many as there are beams
  gcr, model      the model reads the paths; `oracle, builtin`: the builtin model reads as many paths along the gold
                  relations as there are beams, drawn by seed, of which one at least ends in a gold answer

hits_at_1: the first answer is a gold one.  exact: all gold answers and nothing else.  Intervals: Wilson's, 95 %.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scipy.stats import binomtest

from benchmarks import results_file
from benchmarks.answers.auto_work import Work
from benchmarks.conditions import DATA, RESULTS, conditions
from benchmarks.results_file import CONDITIONS
from benchmarks.tables import conditions_line, interval, table
from kgqa_core.answering.exploration import Exploration
from kgqa_core.config import AgentOptions, ConstrainedOptions
from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.export import export
from kgqa_core.kg.store import KgStore
from kgqa_core.llm.builtin.model import load_builtin
from kgqa_core.llm.hf import HFModel
from kgqa_core.llm.hf_constrained import ConstrainedSequence
from kgqa_core.llm.paid import Outcome
from kgqa_core.llm.protocol import Completion, GenerationParams
from kgqa_core.llm.tokens import estimate
from kgqa_core.papers.peers.agent.explorer import GraphAgent, _Run
from kgqa_core.papers.peers.agent.operations import NamedGraph
from kgqa_core.papers.peers.constrained.explorer import PATHS, ConstrainedReasoner
from kgqa_core.papers.peers.constrained.trie import TrieConstraint
from kgqa_core.types import Question
from kgqa_core.workspace import Workspace

FIELDS = (*CONDITIONS, "questions", "types/*", "rows/*/*/...")
"""What the result file holds (benchmarks/results_file.py)."""
SEED, SIZE = 7, 200
LINE = re.compile(r"^(\w+): (.*)$", re.MULTILINE)
"""`Question: …`, `Entity: …`, `Relations: …` in a request of the beam."""

GoldPath = tuple[tuple[int, int, int], ...]
"""Edges (source, directed relation, target) from a topic to an answer."""


class GoldPaths:
    """Of each question the paths along its gold relations, and those of them that end in a gold answer."""

    def __init__(self, dkg: Dkg, questions: Sequence[Question]) -> None:
        ids = {key: number for number, key in enumerate(dkg.relation_keys)}
        self.dkg, self.answers = dkg, {question.id: {*question.answers} for question in questions}
        self.along = {
            question.id: [
                own
                for topic in question.topic_entities
                for path in question.relation_paths
                for own in self._from(topic, [ids[key] for key in path], {*question.answers})
            ]
            for question in questions
        }
        self.paths = {
            name: [path for path in paths if path[-1][2] in self.answers[name]] for name, paths in self.along.items()
        }

    def _from(self, topic: int, relations: Sequence[int], answers: set[int]) -> list[GoldPath]:
        """Paths along the first of the relations that reach some answer; no entity is visited twice."""
        paths: list[GoldPath] = [()]
        for relation in relations:
            paths = [(*path, edge) for path in paths for edge in self._edges(path, topic, relation)]
            if any(path[-1][2] in answers for path in paths):
                return paths
        return []

    def read(self, question: str, count: int) -> list[GoldPath]:
        """At most so many of a question's paths in a seeded order, one to a gold answer among them."""
        good, generator = self.paths[question], random.Random(f"{SEED}/{question}")
        others = [path for path in self.along[question] if path not in good[:1]]
        chosen = [*good[:1], *generator.sample(others, min(len(others), count - 1))]
        return generator.sample(chosen, len(chosen))

    def _edges(self, path: GoldPath, topic: int, relation: int) -> list[tuple[int, int, int]]:
        source, seen = path[-1][2] if path else topic, {topic, *(edge[2] for edge in path)}
        start, stop = (int(bound) for bound in self.dkg.row_bounds(source))
        tails = self.dkg.tail[start:stop][self.dkg.rel[start:stop] == relation]
        return [(source, relation, tail) for tail in tails.tolist() if tail not in seen]

    def onward(self, question: str) -> dict[int, dict[int, set[int]]]:
        """Entity → directed relation → the entities behind it that gold paths go on to."""
        found: dict[int, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
        for path in self.paths[question]:
            for source, relation, target in path:
                found[source][relation].add(target)
        return found


class OracleAgent(GraphAgent):
    """An agent whose replies are those of an oracle; it names nothing but what its session has shown."""

    def explore_with(self, gold: GoldPaths, questions: Sequence[Question]) -> list[Exploration]:
        """One exploration per question, by its gold paths."""
        self.gold, self.followed = gold, defaultdict[str, set[tuple[int, int]]](set)
        return self.explore(questions)

    def _send(self, runs: Sequence[_Run], attempts: int) -> None:
        for run in runs:
            text = json.dumps(self._reply(run))
            spent = estimate(run.prompt), estimate(text)
            self._receive(run, Outcome(Completion(text), prompt_tokens=spent[0], completion_tokens=spent[1]))

    def _reply(self, run: _Run) -> dict[str, Any]:
        assert run.waiting is not None
        session, onward, answers = run.session, self.gold.onward(run.question.id), self.gold.answers[run.question.id]
        reached, names = {*session.visited.values(), *session.topics}, self.view.relation_names
        lines, kind = dict(LINE.findall(run.waiting.user)), run.waiting.forms[0].name
        behind = onward.get(session.ids.get(lines.get("Entity", ""), -1), {})
        if kind == "choose_relations":
            ways = [divmod(relation, len(names)) for relation in behind]
            rows = [{"relation": names[own], "direction": ("out", "in")[back], "score": 1.0} for back, own in ways]
            return {"operation": kind, "relations": rows}
        if kind == "choose_entities":
            good = {session.names[each] for targets in behind.values() for each in targets if each in session.names}
            rows = [{"entity": name, "score": 1.0} for name in json.loads(lines["Entities"]) if name in good]
            return {"operation": kind, "entities": rows}
        if kind == "judge":
            return {"operation": kind, "enough": bool(answers & {*session.visited.values()})}
        followed = self.followed[run.question.id]
        steps = [(entity, relation) for entity in session.names for relation in onward.get(entity, ())]
        todo = [step for step in steps if step not in followed]
        if kind == "answer" or not todo or answers <= reached:
            return {"operation": "answer", "answers": [session.names[each] for each in sorted(answers & reached)]}
        followed.add(todo[0])
        back, own = divmod(todo[0][1], len(names))
        operation = ("follow_out", "follow_in")[back]
        return {"operation": operation, "entity": session.names[todo[0][0]], "relation": names[own]}


class ChoosingAgent(GraphAgent):
    """A beam whose local model writes the likeliest of the names that it is offered."""

    def _send(self, runs: Sequence[_Run], attempts: int) -> None:
        for run in runs:
            assert run.waiting is not None
            kind, offered = run.waiting.forms[0].name, _offered(run)
            reply, spent = NONE_OF[kind], (0, 0)
            if offered:
                params = GenerationParams(max_new_tokens=64, choices=tuple(offered))
                [made] = self.model.generate([run.waiting.user], params)
                reply, spent = offered.get(made.text.strip(), reply), (made.prompt_tokens, made.completion_tokens)
            text = json.dumps({"operation": kind, **reply})
            self._receive(run, Outcome(Completion(text), prompt_tokens=spent[0], completion_tokens=spent[1]))


NONE_OF: Mapping[str, dict[str, Any]] = {
    "choose_relations": {"relations": []}, "choose_entities": {"entities": []}, "judge": {"enough": False},
    "answer": {"answers": []},
}  # fmt: skip


def _offered(run: _Run) -> dict[str, dict[str, Any]]:
    """What a beam's request offers, as a model writes it, with the reply that it stands for."""
    assert run.waiting is not None
    lines, kind, session = dict(LINE.findall(run.waiting.user)), run.waiting.forms[0].name, run.session
    if kind == "choose_relations":
        return {
            f"{name} ({way})": {"relations": [{"relation": name, "direction": way, "score": 1.0}]}
            for way, names in json.loads(lines["Relations"]).items()
            for name in names
        }
    if kind == "choose_entities":
        return {name: {"entities": [{"entity": name, "score": 1.0}]} for name in json.loads(lines["Entities"])}
    if kind == "judge":
        return {"yes": {"enough": True}, "no": {"enough": False}}
    reached = dict.fromkeys(session.visited.values())
    return {session.names[each]: {"answers": [session.names[each]]} for each in reached}


class OracleReasoner(ConstrainedReasoner):
    """Decoding whose paths are those of an oracle.  reads: whether it also answers from them, or the model does."""

    gold: GoldPaths
    reads = True

    def _explore(self, question: Question) -> Exploration:
        self.question = question
        return super()._explore(question)

    def _decode(
        self, prompt: str, constraint: TrieConstraint, beams: int, known: Sequence[object]
    ) -> tuple[list[ConstrainedSequence], tuple[int, int]]:
        if prompt.startswith(PATHS.partition("\n")[0]):
            name = self.question.id
            paths = self.gold.paths[name] if self.reads else self.gold.read(name, beams)
            segments = [self._segments(path) for path in paths]
        elif self.reads:
            segments = [[f" {name}"] for name in self._names(sorted(self.gold.answers[self.question.id]))]
        else:
            return super()._decode(prompt, constraint, beams, known)
        written = dict.fromkeys(tuple(token for part in self.tokens(own) for token in part) for own in segments)
        chosen = [ids for ids in written if constraint.accepts(ids)][:beams]
        sequences = [ConstrainedSequence(ids, -float(rank)) for rank, ids in enumerate(chosen)]
        return sequences, (estimate(prompt), sum(map(len, chosen)))

    def _segments(self, path: GoldPath) -> list[str]:
        """A path as the trie has it: the topic, and each relation with its arrows before the entity behind it."""
        [first, *others] = self._names([path[0][0], *(target for _, _, target in path)])
        written = [first]
        for (_, relation, _), name in zip(path, others, strict=True):
            back, own = divmod(relation, self.view.dkg.relations)
            arrow = ("->", "<-")[back]
            written += [f" {arrow} {self.view.relation_names[own]} {arrow}", f" {name}"]
        return written

    def _names(self, entities: Sequence[int]) -> list[str]:
        names = self.view.entity_names(entities)
        return [" ".join(names[entity].split()) for entity in entities]


def figures(questions: Sequence[Question], explored: Sequence[Exploration], store: KgStore) -> dict[str, Any]:
    """Scores and costs of a row."""
    keys = store.entity_keys(sorted({entity for question in questions for entity in question.answers}))
    gold = [{keys[entity] for entity in question.answers} for question in questions]
    first = [bool(own.keys) and own.keys[0] in right for own, right in zip(explored, gold, strict=True)]
    exact = [{*own.keys} == right for own, right in zip(explored, gold, strict=True)]
    by_type: dict[str, list[bool]] = defaultdict(list)
    for question, good in zip(questions, exact, strict=True):
        by_type[question.complexity or ""].append(good)
    size = len(questions)
    return {
        "hits_at_1": share(first), "exact": share(exact),
        "by_type": {kind: round(sum(own) / len(own), 4) for kind, own in sorted(by_type.items())},
        "ends": dict(sorted(Counter(own.end for own in explored).items())),
        "calls": round(sum(own.calls for own in explored) / size, 2),
        "tokens": round(sum(own.prompt_tokens + own.completion_tokens for own in explored) / size, 1),
    }  # fmt: skip


def share(good: Sequence[bool]) -> dict[str, float]:
    """A share with its interval."""
    low, high = binomtest(sum(good), len(good)).proportion_ci(method="wilson")
    return {"share": round(sum(good) / len(good), 4), "low": round(low, 4), "high": round(high, 4)}


def measure(view: NamedGraph, questions: Sequence[Question], model: HFModel) -> dict[str, dict[str, Any]]:
    """Figures by method and model."""
    gold = GoldPaths(view.dkg, questions)
    rows: dict[str, dict[str, Any]] = {}

    def row(method: str, name: str, explored: Sequence[Exploration]) -> None:
        rows.setdefault(method, {})[name] = figures(questions, explored, view.store)
        print(method, name, rows[method][name], flush=True)

    for policy in ("loop", "beam"):
        options = AgentOptions(policy=policy, protocol="json")
        row(f"agent, {policy}", "oracle", OracleAgent(view, model, options).explore_with(gold, questions))
    writing = AgentOptions(protocol="json", max_new_tokens=64)
    row("agent, loop", "builtin", GraphAgent(view, model, writing, attempts=1).explore(questions))
    choosing = AgentOptions(policy="beam", protocol="json")
    row("agent, beam", "builtin", ChoosingAgent(view, model, choosing).explore(questions))
    for final in ("paths", "model"):
        constrained = ConstrainedOptions(final=final)
        for name, reads in (("oracle", True), ("oracle, builtin", False))[: 1 + (final == "model")]:
            reasoner = OracleReasoner(view, model, constrained)
            reasoner.gold, reasoner.reads = gold, reads
            row(f"gcr, {final}", name, reasoner.explore(questions))
        row(f"gcr, {final}", "builtin", ConstrainedReasoner(view, model, constrained).explore(questions))
    return rows


def tables(found: Mapping[str, Any]) -> str:
    """The tables of the page."""
    rows, types = [], []
    for method, models in found["rows"].items():
        for model, own in models.items():
            shown = [interval(own[name]) for name in ("hits_at_1", "exact")]
            rows.append((method, model, *shown, f"{own['calls']:.1f}", f"{own['tokens']:,.0f}"))
            if model == "oracle":
                types.append((method, *(f"{value:.2f}" for value in own["by_type"].values())))
    first = table(("method", "model", "Hits@1", "exact", "calls", "tokens"), rows)
    second = table(("exact by the oracle", *(f"{kind}, {size}" for kind, size in found["types"].items())), types)
    return f"{found['questions']} questions. {conditions_line(found['conditions'])}\n\n{first}\n{second}"


def main() -> None:
    """Draws the questions, explores and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--questions", type=int, default=SIZE)
    parser.add_argument("--json", type=Path, default=RESULTS / "peers.json")
    given = parser.parse_args()
    work = Work(given.work, DATA, SEED)
    kg, options = work.kg("atlas"), work.profile("atlas").dkg
    if not (given.work / "dkg").exists():
        (given.work / "dkg").mkdir()
        export(Workspace(given.work / "dkg"), kg=kg, options=options)
    there = [question for question in work.split("atlas", "dev") if question.answers and not question.unlinkable]
    questions = sorted(random.Random(SEED).sample(there, given.questions), key=lambda question: question.id)
    with KgStore.open(kg) as store:
        rows = measure(NamedGraph(Dkg.open(given.work / "dkg"), store, AgentOptions().shown), questions, load_builtin())
    types = Counter(question.complexity or "" for question in questions)
    document = {
        "conditions": conditions(SEED), "questions": len(questions), "types": dict(sorted(types.items())), "rows": rows,
    }  # fmt: skip
    results_file.write(given.json, document, FIELDS)


if __name__ == "__main__":
    main()
