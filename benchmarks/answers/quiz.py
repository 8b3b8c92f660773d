"""A development set of 100 quiz questions by people over `wikidata_mini`: how often a gold answer is named.

    python -m benchmarks.answers.quiz [--system HOME] [--run ID] [--data DIR] [--out FILE] [--transcripts N]
    python -m benchmarks.answers.quiz --select [--data DIR]

The questions are those that benchmarks/people/quiz_dev.tsv names, of the dev split of Mintaka, the dev split of
WikiWebQuestions and the training questions of QALD-7 over Wikidata; their texts and answers are read from the shared
data.  The packaged head start answers at once from the files of `wikidata_mini` (triples, labels and qualifiers), or
the run of a home over them.  Figures, as JSON: named (a gold answer is among the answers), wrong (answered without
one), declined, exact, and wrong with a high confidence.

--select writes the list anew, and ends with 1 where a fact is not in the graph.  Of Mintaka, which has no queries, the
list says the facts that answer a question; its questions were chosen by hand where the graph has these.  Of the others
those are chosen whose query gives the published answers, and no others, on the graph, each with a label (or yes: a no
may come from what the graph lacks): all of QALD-7, and one of each query of WikiWebQuestions by the hash of its id
until there are 100.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import results_file
from benchmarks.answers.people import PEOPLE, SEED, SURE, ask, is_exact, normal, share, system_of, transcripts
from benchmarks.conditions import DATA, conditions
from benchmarks.results_file import CONDITIONS
from kgqa_core.answering.reply import Answer

FIELDS = (*CONDITIONS, "benchmark", "questions", "figures/...", "sets/*/...")
"""What the result file holds (benchmarks/results_file.py)."""

LIST = PEOPLE / "quiz_dev.tsv"
NUMBER = 100
FILES = ("triples.tsv", "labels.en.tsv", "qualifiers.tsv")
ENTITY, DIRECT = "http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/direct/"
PREFIXES = f"PREFIX wd: <{ENTITY}> PREFIX wdt: <{DIRECT}> "
MINTAKA, WEB, QALD = "mintaka", "wikiwebquestions", "qald7"

Fact = tuple[str, ...]
"""Subject, relation and object by key."""


@dataclass(frozen=True)
class QuizQuestion:
    """A question.  gold: keys of entities, yes or no, or a count; names: published names of these."""

    set: str
    id: str
    text: str
    gold: tuple[str, ...]
    names: tuple[str, ...] = ()
    sparql: str | None = None


def questions(data: Path) -> Iterator[QuizQuestion]:
    """All questions of the three sets that have an answer of entities or of yes or no."""
    for row in _read(data / "mintaka" / "mintaka_dev.json"):
        answer = row["answer"]
        values = answer["answer"] or ()
        if answer["answerType"] == "boolean":
            gold, names = tuple("yes" if value else "no" for value in values), ()
        elif answer["answerType"] == "entity" and all(value["name"] for value in values):
            gold = tuple(value["name"] for value in values)
            names = (answer["mention"], *filter(None, (value["label"] for value in values)))
            if row["complexityType"] == "count":
                gold, names = (str(len(gold)),), names[1:]
        else:
            continue
        yield QuizQuestion(MINTAKA, row["id"], row["question"], gold, names)
    for row in _read(data / WEB / "dev.json"):
        if isinstance(row["results"], list):
            yield QuizQuestion(WEB, row["id"], row["utterance"], _keys(row["results"]), (), row["sparql"])
    for row in _read(data / "qald" / "qald-7-train-en-wikidata.json")["questions"]:
        answer = row["answers"][0]
        truth = ("yes" if answer["boolean"] else "no",) if "boolean" in answer else ()
        gold = truth or _keys(answer["results"]["bindings"])
        yield QuizQuestion(QALD, str(row["id"]), row["question"][0]["string"], gold, (), row["query"]["sparql"])


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _keys(bindings: list[dict[str, dict[str, str]]]) -> tuple[str, ...]:
    """Keys of the answers of a published result; literals as they are."""
    values = {value["value"].removeprefix(ENTITY) for binding in bindings for value in binding.values()}
    return tuple(sorted(values))


def listed() -> list[tuple[str, str, tuple[Fact, ...]]]:
    """The questions of the list, by set and id, with the facts that it names."""
    with LIST.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t"))
    facts = ((row, filter(None, row["facts"].split("; "))) for row in rows)
    return [(row["set"], row["id"], tuple(tuple(fact.split()) for fact in own)) for row, own in facts]


def labels(data: Path) -> dict[str, str]:
    """The English labels of the graph by key."""
    lines = (data / "wikidata_mini" / "labels.en.tsv").read_text(encoding="utf-8").splitlines()
    return dict(line.split("\t", 1) for line in lines)


def triples(data: Path) -> Iterator[Fact]:
    """The triples of the graph."""
    with (data / "wikidata_mini" / "triples.tsv").open(encoding="utf-8") as stream:
        yield from (tuple(line.rstrip("\n").split("\t")) for line in stream)


def rows(data: Path) -> list[dict[str, Any]]:
    """The questions of the list as `people` reads questions; names: every name that a gold answer has.

    Raises KeyError for a question that the shared data lack.
    """
    known = {(one.set, one.id): one for one in questions(data)}
    label, result = labels(data), []
    for name, key, _ in listed():
        one = known[name, key]
        answers = [label.get(gold, gold) for gold in one.gold]
        result.append(
            {"id": f"{name}-{key}", "set": name, "question": one.text, "answers": answers, "answerable": True,
             "reason": None, "type": None, "names": [*answers, *one.names]}
        )  # fmt: skip
    return result


def select(data: Path) -> list[str]:
    """Writes the list; gives the facts of Mintaka's questions that are not in the graph."""
    import pyoxigraph as ox

    graph, label, store = set(triples(data)), labels(data), ox.Store()
    store.bulk_extend(
        ox.Quad(ox.NamedNode(ENTITY + s), ox.NamedNode(DIRECT + p), ox.NamedNode(ENTITY + o)) for s, p, o in graph
    )
    own = [row for row in listed() if row[0] == MINTAKA]
    chosen: dict[str, dict[str, QuizQuestion]] = {QALD: {}, WEB: {}}
    for one in questions(data):
        if one.sparql and one.gold and _results(store, one.sparql) == one.gold and all(
            gold in label or gold == "yes" for gold in one.gold
        ):  # fmt: skip
            chosen[one.set].setdefault(one.sparql, one)
    web = sorted(chosen[WEB].values(), key=lambda one: hashlib.sha256(one.id.encode()).hexdigest())
    others = [*chosen[QALD].values(), *web][: NUMBER - len(own)]
    lines = [(name, key, "; ".join(" ".join(fact) for fact in facts)) for name, key, facts in own]
    lines += [(one.set, one.id, "") for one in others]
    with LIST.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, delimiter="\t", lineterminator="\n").writerows([("set", "id", "facts"), *lines])
    return [f"{key}: {' '.join(fact)}" for _, key, facts in own for fact in facts if fact not in graph]


def _results(store: Any, sparql: str) -> tuple[str, ...]:
    """The results of a query as keys; none of one that does not run."""
    try:
        results = store.query(PREFIXES + sparql)
    except (SyntaxError, ValueError, RuntimeError, OSError):
        return ()
    if type(results).__name__ == "QueryBoolean":
        return ("yes" if results else "no",)
    return tuple(sorted({solution[0].value.removeprefix(ENTITY) for solution in results if solution[0] is not None}))


def verdict(row: dict[str, Any], reply: Answer) -> str:
    """What an answer is: declined, named (some gold answer is among the answers), or wrong."""
    if reply.answer is None:
        return "declined"
    return "named" if normal(reply.listed) & normal(row["names"]) else "wrong"


def figures(asked: list[dict[str, Any]], replies: list[Answer]) -> dict[str, Any]:
    """Shares of the verdicts with their intervals, of exact answers, and of those wrong with a high confidence."""
    verdicts = [verdict(row, reply) for row, reply in zip(asked, replies, strict=True)]
    sure = [(reply.confidence or 0) > SURE for reply in replies]
    return {
        **{name: share([own == name for own in verdicts]) for name in ("named", "wrong", "declined")},
        "exact": share([is_exact(row, reply) for row, reply in zip(asked, replies, strict=True)]),
        f"wrong_above_{SURE}": share([own == "wrong" and high for own, high in zip(verdicts, sure, strict=True)]),
    }


def main() -> None:
    """Reads the command line, selects, or answers, scores and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--select", action="store_true")
    parser.add_argument("--system", help="home of a run over wikidata_mini")
    parser.add_argument("--run", default=None)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--transcripts", type=int, default=0)
    given = parser.parse_args()
    if given.select:
        missing = select(given.data)
        print("\n".join(missing), file=sys.stderr)
        sys.exit(1 if missing else 0)
    files = ",".join(str(given.data / "wikidata_mini" / name) for name in FILES)
    asked, replies, _ = ask(rows(given.data), system_of(given.system or files, given.run))
    sets: dict[str, list[int]] = defaultdict(list)
    for index, row in enumerate(asked):
        sets[row["set"]].append(index)
    made = {
        "benchmark": "quiz",
        "conditions": conditions(SEED),
        "questions": len(asked),
        "figures": figures(asked, replies),
        "sets": {name: figures([asked[i] for i in own], [replies[i] for i in own]) for name, own in sets.items()},
    }
    if given.out is not None:
        results_file.write(given.out, made, FIELDS)
    transcripts(asked, replies, given.transcripts)
    print(json.dumps(made, indent=1))


if __name__ == "__main__":
    main()
