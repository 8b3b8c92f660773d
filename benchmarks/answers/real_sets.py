"""Question sets over real graphs (profiles real-*): what they hold, how easy they are, and what two systems answer.

    python -m benchmarks.answers.real_sets --work DIR [--shared ../shared] [--only NAME …] [--parts PART …]
        [--json benchmarks/results/real_sets.json]

Sets: real-wikidata-mini, real-codex-m, real-fb15k237 (needs the files of real_sets_data.py), and wikidata-mini, the
shipped SimpleQuestions, for comparison.  Parts: baselines, hop_path, auto; what is measured is in the JSON at once,
the rest of its row stays.  DIR keeps graphs, questions and trained models: what is there is not made again.

hit: of the test questions with an answer that is an entity and no topic, the share for which a retrieved fact names
such an answer; random, frequent and oracle retrieve k = 10 facts a hop from gold topics.  random: Random Facts.
frequent: the relation path most frequent in training that leads anywhere from the topics and has as many relations as
the question has hops.  frequent_answer: the answer of most training questions, over all test questions;
frequent_answer_of_type: that of the training questions of the same type.  hop_path: as its profile trains it, on train,
chosen on dev; hits_at_1 is of the entity that it ranks first.  auto: exact and Hits@1 on a seeded sample of 100
test questions, gold topics, by the packaged head start: nothing is trained on the set.  Intervals: normal
approximation, 95 %.
"""

from __future__ import annotations

import argparse
import json
import logging
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import results_file
from benchmarks.answers.auto_figures import figures, is_exact
from benchmarks.answers.auto_work import PROFILES, Answering, Work
from benchmarks.answers.people import share
from benchmarks.conditions import RESULTS, ROOT, conditions
from kgqa_core.builders.questions.generate import generate
from kgqa_core.builders.questions.mix import load_mixed
from kgqa_core.config import Profile, make_profile, read_profile
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.datasets.published.registry import GENERATED
from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.export import export
from kgqa_core.monitor import Log
from kgqa_core.retrieval.api import Retriever, RetrieverInputs, TrainingInputs
from kgqa_core.retrieval.registry import open_retriever, retriever_spec
from kgqa_core.store.artifacts import read_manifest
from kgqa_core.types import COMPLEXITY_TYPES, Question, Retrieved
from kgqa_core.workspace import Workspace
from tasks.engine.key import code_digest

FIELDS = ("benchmark", "results/*/...")
"""What the result file holds (benchmarks/results_file.py)."""
SEED = 7
K = 10
SAMPLE = 100
FRONTIER = 20
SETS = ("real-wikidata-mini", "real-codex-m", "real-fb15k237", "wikidata-mini")
PARTS = ("baselines", "hop_path", "auto")
log = logging.getLogger("kgqa")

Good = Mapping[str, bool]
"""Id of a question → whether it is right."""


class RealSets(Work):
    """Graphs, questions and trained models of the profiles, by name."""

    def profile(self, graph: str) -> Profile:
        """A shipped profile with the files of the shared data."""
        tree = read_profile(PROFILES / f"{graph}.yaml")
        data = str(self.shared)
        tree["kg"]["files"] = [str(ROOT / name.replace("../shared/data", data)) for name in tree["kg"]["files"]]
        if "path" in tree["questions"]:
            tree["questions"]["path"] = tree["questions"]["path"].replace("../shared/data", data)
        return make_profile(tree)

    def questions(self, graph: str) -> Path:
        """Folder of all questions of a profile: made from the graph as `kgqa run` makes them, or read."""
        options = self.profile(graph).questions
        if options.source != GENERATED:
            return super().questions(graph)
        kg = self.kg(graph)
        parts = {"kg": kg.name, "options": options.generated, "seed": self.seed, "code": code_digest(generate)}
        made = self._made("generated", parts, lambda out, _: generate(Workspace(out), kg, options.generated, self.seed))
        loaded = {
            "kg": kg.name,
            "made": made.name,
            "options": options,
            "seed": self.seed,
            "code": code_digest(load_mixed),
        }
        repeat = options.generated.repeat
        return self._made(
            "questions",
            loaded,
            lambda out, _: load_mixed(
                Workspace(out), kg=kg, generated=made, options=options, repeat=repeat, seed=self.seed
            ),
        )

    def dkg(self, graph: str) -> Path:
        """Folder of the sparse arrays."""
        kg, options = self.kg(graph), self.profile(graph).dkg
        parts = {"kg": kg.name, "options": options, "code": code_digest(export)}
        return self._made("dkg", parts, lambda out, work: export(Workspace(out, work), kg=kg, options=options))

    def retriever(self, graph: str, name: str) -> Path:
        """Folder of a trained retriever."""
        spec, kg, dkg, questions = retriever_spec(name), self.kg(graph), self.dkg(graph), self.questions(graph)
        assert spec.train is not None
        train = spec.train
        options = getattr(self.profile(graph), spec.section or name)
        parts = {
            "dkg": dkg.name,
            "questions": questions.name,
            "options": options,
            "seed": self.seed,
            "code": code_digest(train),
        }

        def fill(out: Path, work: Path) -> Mapping[str, Any]:
            inputs = TrainingInputs(dkg, questions, options, self.seed, kg=kg)
            return train(Workspace(out, work, monitor=Log("loss", 30)), inputs)

        return self._made(name, parts, fill)

    def open(self, graph: str, name: str, trained: Path | None = None) -> Retriever:
        """A retriever over a graph, k facts a hop."""
        profile = self.profile(graph)
        options = profile.retrieval.model_copy(update={"k": K})
        section = getattr(profile, retriever_spec(name).section) if retriever_spec(name).section else None
        inputs = RetrieverInputs(Dkg.open(self.dkg(graph)), options, self.seed, section, trained, self.kg(graph))
        return open_retriever(name, inputs)


def follow_frequent(
    oracle: Retriever, dkg: Dkg, training: Sequence[Question], test: Sequence[Question]
) -> list[Retrieved]:
    """Facts of the path that is most frequent in training of those that lead anywhere from a question's topics.

    Only paths of as many relations as the question has hops count, where training has some.
    """
    known = set(dkg.relation_ids)
    counts = Counter(path for question in training for path in set(question.relation_paths) if known.issuperset(path))
    paths = sorted(counts, key=lambda path: (-counts[path], path))
    found = []
    for question in test:
        result = Retrieved(question.id)
        alike = [path for path in paths if len(path) == question.hops]
        for path in alike or paths:
            steps = [dkg.relation_ids[relation] for relation in path]
            if leads(dkg, question.topic_entities, steps):
                result = oracle.retrieve([replace(question, answers=(), relation_paths=(path,))])[0]
                break
        found.append(result)
    return found


def leads(dkg: Dkg, topics: Iterable[int], path: Sequence[int]) -> bool:
    """Whether relations lead from any topic to anything; of the ends of a hop the first `FRONTIER` are gone on from."""
    frontier = sorted(set(topics))
    for relation in path:
        ends: set[int] = set()
        for entity in frontier[:FRONTIER]:
            start, stop = (int(bound) for bound in dkg.row_bounds(entity))
            first, last = np.searchsorted(dkg.rel[start:stop], (relation, relation + 1))
            ends.update(dkg.tail[start + first : start + min(last, first + FRONTIER)].tolist())
        frontier = sorted(ends)
    return bool(frontier)


def hits(dkg: Dkg, questions: Sequence[Question], found: Sequence[Retrieved]) -> dict[str, bool]:
    """Whether a fact retrieved for a question ends at one of its answers, by id."""
    good = {}
    for question, result in zip(questions, found, strict=True):
        heads, _, tails = dkg.edges(sorted({fact.triple for fact in result.facts}))
        ends = {*heads.tolist(), *tails.tolist()} - set(question.topic_entities)
        good[question.id] = not ends.isdisjoint(question.answers)
    return good


def frequent_answers(training: Sequence[Question], test: Sequence[Question], *, by_type: bool) -> dict[str, bool]:
    """Whether the answer of most training questions, of all or of those of the same type, is one of a question's."""
    counts: dict[str | None, Counter[str]] = defaultdict(Counter)
    for question in training:
        counts[question.complexity if by_type else None].update(set(question.answer_keys))
    best = {kind: min(each, key=lambda key: (-each[key], key)) for kind, each in counts.items() if each}
    return {q.id: best.get(q.complexity if by_type else None) in q.answer_keys for q in test}


def grouped(questions: Sequence[Question], good: Good) -> dict[str, Any]:
    """The share that is right, of all questions that were measured, by type and by hops."""
    measured = [question for question in questions if question.id in good]
    groups: Mapping[str, Callable[[Question], Any]] = {"by_type": lambda q: q.complexity, "by_hops": lambda q: q.hops}
    result: dict[str, Any] = {"all": share([good[q.id] for q in measured])}
    for name, key in groups.items():
        members: dict[str, list[bool]] = defaultdict(list)
        for question in measured:
            members[str(key(question) or "-")].append(good[question.id])
        result[name] = {value: share(own) for value, own in sorted(members.items())}
    return result


def contents(work: RealSets, name: str) -> dict[str, Any]:
    """The graph's and the set's counts: splits, and all questions by type and hops."""
    questions = read_questions(work.questions(name))
    table: dict[str, Counter[str]] = defaultdict(Counter)
    for question in questions:
        table[question.complexity or "-"][str(question.hops)] += 1
    made = read_manifest(work.kg(name))["counts"]["made"]
    return {
        "graph": {part: made[part] for part in ("entities", "relations", "triples")},
        "splits": dict(sorted(Counter(question.split for question in questions).items())),
        "by_type_and_hops": {kind: dict(sorted(own.items())) for kind, own in sorted(table.items())},
    }


def baselines(work: RealSets, name: str) -> dict[str, Any]:
    """Random facts, the most frequent path, the oracle, and most frequent answers."""
    training, test = work.split(name, "train"), work.split(name, "test")
    entities = with_entities(test)
    dkg = Dkg.open(work.dkg(name))
    oracle = work.open(name, "oracle")
    found = {
        "random": work.open(name, "random").retrieve(entities),
        "frequent": follow_frequent(oracle, dkg, training, entities),
        "oracle": oracle.retrieve(entities),
    }
    return {one: grouped(entities, hits(dkg, entities, results)) for one, results in found.items()} | {
        "frequent_answer": grouped(test, frequent_answers(training, test, by_type=False)),
        "frequent_answer_of_type": grouped(test, frequent_answers(training, test, by_type=True)),
    }


def hop_path(work: RealSets, name: str) -> dict[str, Any]:
    """The path retriever, trained as the profile says."""
    started = time.monotonic()
    trained = work.retriever(name, "hop_path")
    entities = with_entities(work.split(name, "test"))
    found = work.open(name, "hop_path", trained).retrieve(entities)
    first = {
        q.id: bool(result.entities) and result.entities[0][0] in q.answers
        for q, result in zip(entities, found, strict=True)
    }
    return {
        "hop_path": grouped(entities, hits(Dkg.open(work.dkg(name)), entities, found)),
        "hop_path_hits_at_1": grouped(entities, first),
        "hop_path_seconds": round(time.monotonic() - started, 1),
    }


def auto(work: RealSets, name: str) -> dict[str, Any]:
    """The answerer `auto`, which has seen no question of the graph, on a sample of the test questions, gold topics."""
    started = time.monotonic()
    parser = work.parser(name, work.untrained(name), work.options(name, steps=0, adapt="never", hops=3))
    test = work.sample(work.split(name, "test"), SAMPLE, name)
    with Answering(work, name, parser, linked=False) as answering:
        solved = answering.solve(test)
    exact = {q.id: is_exact(q, one.keys, one.answers) for q, one in zip(test, solved, strict=True)}
    groups: dict[str, Callable[[Question], str]] = {
        "exact_by_type": lambda q: str(q.complexity), "exact_by_hops": lambda q: str(q.hops),
    }  # fmt: skip
    by = {
        key: {kind: share([exact[q.id] for q in test if of(q) == kind]) for kind in sorted({*map(of, test)})}
        for key, of in groups.items()
    }
    return {"auto": figures(test, solved) | by | {"seconds": round(time.monotonic() - started, 1)}}


def with_entities(questions: Sequence[Question]) -> list[Question]:
    """The questions with an answer that is an entity and no topic; which of two topics has more is no such answer."""
    return [question for question in questions if not set(question.answers) <= set(question.topic_entities)]


MEASURES: Mapping[str, Callable[[RealSets, str], dict[str, Any]]] = {
    "baselines": baselines, "hop_path": hop_path, "auto": auto,
}  # fmt: skip


def measure(work: RealSets, name: str, parts: Sequence[str], path: Path) -> None:
    """Measures parts of a set and writes each as it is done; the other parts of its row stay."""
    for part in parts:
        started = time.monotonic()
        figures_of = MEASURES[part](work, name)
        document: dict[str, Any] = {"benchmark": "real_sets", "results": {}}
        if path.is_file():
            document = json.loads(path.read_text(encoding="utf-8"))
        row = document["results"].setdefault(name, {})
        row |= {"k": K, **contents(work, name), **figures_of}
        row.setdefault("conditions", {})[part] = conditions(work.seed)
        results_file.write(path, document, FIELDS, sort_keys=True)
        log.info("%s, %s: measured after %.0f s", name, part, time.monotonic() - started)


COLUMNS = {
    "random facts": "random", "most frequent path": "frequent", "oracle": "oracle",
    "most frequent answer": "frequent_answer", "… of its type": "frequent_answer_of_type", "hop_path, hit": "hop_path",
    "hop_path, Hits@1": "hop_path_hits_at_1",
}  # fmt: skip


def page(found: Mapping[str, Any]) -> str:
    """The table of its page in the docs."""
    return table(found["results"])


def table(results: Mapping[str, Any]) -> str:
    """Markdown: the sets' questions by type and hops, the figures of each set, and those of each type."""
    names = [name for name in SETS if name in results]
    hops = ("1", "2", "3")
    made = [name for name in names if name.startswith("real-")]
    lines = ["| questions of all splits | " + " | ".join(f"{name}, 1 / 2 / 3 hops" for name in made) + " |"]
    lines.append("|---" * (len(made) + 1) + "|")
    for kind in COMPLEXITY_TYPES:
        own = [results[name]["by_type_and_hops"].get(kind, {}) for name in made]
        lines.append(f"| {kind} | " + " | ".join(" / ".join(str(each.get(n, 0)) for n in hops) for each in own) + " |")
    lines += ["", "| set | test questions | " + " | ".join([*COLUMNS, "auto, exact", "auto, Hits@1"]) + " |"]
    lines.append("|---" * (len(COLUMNS) + 4) + "|")
    for name in names:
        row = results[name]
        lines.append(
            f"| {name} | {row['splits']['test']} | " + " | ".join(_cells(row, lambda one: one.get("all"))) + " |"
        )
    lines += ["", "| set, type | test questions | " + " | ".join([*COLUMNS, "auto, exact", "auto, Hits@1"]) + " |"]
    lines.append("|---" * (len(COLUMNS) + 4) + "|")
    for name in names:
        for kind in (kind for kind in COMPLEXITY_TYPES if kind in results[name]["frequent_answer"]["by_type"]):
            row = results[name]
            cells = _cells(row, lambda one, kind=kind: one.get("by_type", {}).get(kind), kind)  # type: ignore[misc]
            number = row["frequent_answer"]["by_type"][kind]["n"]
            lines.append(f"| {name}, {kind} | {number} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cells(row: Mapping[str, Any], pick: Callable[[Mapping[str, Any]], Any], kind: str | None = None) -> list[str]:
    cells = [_cell(pick(row.get(place, {}))) for place in COLUMNS.values()]
    scored = row.get("auto", {})
    if kind is not None:
        return [*cells, _cell(scored.get("exact_by_type", {}).get(kind)), "–"]
    return [*cells, _cell(scored.get("exact")), _cell(scored.get("hits_at_1"))]


def _cell(value: Mapping[str, Any] | None) -> str:
    return "–" if not value or value.get("share") is None else f"{value['share']:.3f}".removeprefix("0")


def main() -> None:
    """Reads the command line, and measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    parser.add_argument("--only", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--json", type=Path, default=RESULTS / "real_sets.json")
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    shared = given.shared / "data" if (given.shared / "data").is_dir() else given.shared
    work = RealSets(given.work.resolve(), shared.resolve(), SEED)
    for name in given.only:
        measure(work, name, given.parts, given.json)


if __name__ == "__main__":
    main()
