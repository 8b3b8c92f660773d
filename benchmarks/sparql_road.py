"""Share of SPARQL queries of question sets that are read as forms, and turned into gold subgraphs.

    python -m benchmarks.sparql_road --json benchmarks/results/sparql_road.json

WebQSP's train split (every parse), GrailQA's sample of 1,000 and QALD-9's train split; no test split is read.  There is
no whole Freebase and no DBpedia here, so the graph is made of the annotation, without the SPARQL: of WebQSP the chain,
constraints, times and orders, of GrailQA the graph query, with every gold answer in the place of the answer and new
nodes in between.  One graph holds all questions of a set, so that questions about one topic see each other's triples.

read: a form writes the query (`logic.sparql`).  subgraph: of those with an annotation, the form finds something, and
its proof is the gold subgraph.  gold_found: every gold answer is among the results; equal: the results are the gold
answers.  Queries that are not read, or give no subgraph, are counted by reason.  QALD-9 has no annotation besides its
SPARQL: it is read only.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.conditions import conditions
from kgqa_core.config import KgOptions
from kgqa_core.datasets.grailqa import GrailQuestion, read_records
from kgqa_core.datasets.webqsp import read_parses
from kgqa_core.datasets.webqsp_parses import ParseConstraint, WebQspParse, WebQspQuestion
from kgqa_core.errors import FormError, FormTimeout
from kgqa_core.kg.build import build
from kgqa_core.kg.store import KgStore
from kgqa_core.kg.vocabulary import FREEBASE, XSD
from kgqa_core.logic.execute import execute
from kgqa_core.logic.sparql import from_sparql
from kgqa_core.logic.sparql_query import Outside

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.results_file import CONDITIONS

FIELDS = (
    *CONDITIONS, "sets/*/*", "?sets/*/not_read/...", "?sets/*/without_subgraph/...",
)  # fmt: skip
"""What the result file holds (benchmarks/results_file.py)."""

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
TYPE = "type.object.type"
SEED = 7
"""Nothing is drawn; the seed is that of every record."""

Line = tuple[str, str, str]
"""Subject, relation and object as N-Triples writes them, without brackets: of an object the whole term."""


@dataclass(frozen=True)
class AnnotatedQuery:
    """A query, its gold answers, and triples of its annotation; None, with the reason, where none can be made."""

    id: str
    sparql: str
    answers: tuple[str, ...]
    triples: tuple[Line, ...] | None
    reason: str = ""


def webqsp_queries(folder: Path) -> Iterator[AnnotatedQuery]:
    """The parses of train."""
    for question in read_parses(folder):
        if isinstance(question, WebQspQuestion) and question.split == "train":
            for parse in question.parses:
                answers = tuple(answer.argument for answer in parse.answers)
                triples, reason = _of_parse(parse, answers)
                yield AnnotatedQuery(parse.id, parse.sparql or "", answers, triples, reason)


def _of_parse(parse: WebQspParse, answers: Sequence[str]) -> tuple[tuple[Line, ...] | None, str]:
    if parse.by_hand or not parse.chain or parse.topic is None:
        return None, "the parse was written by hand"
    if not answers:
        return None, "no gold answer"
    if any(one.node >= len(parse.chain) for one in parse.constraints):
        return None, "a constraint on a node that the chain does not have"
    if parse.order is not None and parse.order.start:
        return None, "an ordinal, whose annotation does not say what comes before"
    lines: list[Line] = []
    for number, answer in enumerate(parse.answers):
        nodes = [_entity(f"m.between_{parse.id}_{number}_{step}") for step in range(len(parse.chain) - 1)]
        nodes.append(_entity(answer.argument) if answer.entity else _value(answer.argument))
        starts = [_entity(parse.topic), *nodes]
        lines += [(start, relation, end) for start, relation, end in zip(starts, parse.chain, nodes, strict=False)]
        for one in parse.constraints:
            lines.append((nodes[one.node], one.relation, _argument(one)))
        if parse.order is not None and parse.order.relation is not None and parse.order.node < len(nodes):
            rank = '"2000-01-01"' if parse.order.value_type == "DateTime" else '"1"'
            kind = "date" if parse.order.value_type == "DateTime" else "integer"
            lines.append((nodes[parse.order.node], parse.order.relation, f"{rank}^^<{XSD}{kind}>"))
    if any(subject.startswith('"') for subject, _, _ in lines):
        return None, "a value in the middle of the chain"
    return tuple(dict.fromkeys(lines)), ""


def _argument(one: ParseConstraint) -> str:
    if one.entity:
        return _entity(one.argument)
    return f'"{one.argument}"^^<{XSD}date>' if one.value_type == "DateTime" else json.dumps(one.argument)


def grailqa_queries(path: Path) -> Iterator[AnnotatedQuery]:
    """The questions of the sample."""
    for question in read_records(path):
        if isinstance(question, GrailQuestion):
            answers = tuple(answer.argument for answer in question.answers or ())
            triples, reason = _of_graph_query(question, answers)
            yield AnnotatedQuery(question.id, question.sparql or "", answers, triples, reason)


def _of_graph_query(question: GrailQuestion, answers: Sequence[str]) -> tuple[tuple[Line, ...] | None, str]:
    query = question.graph_query
    if query is None or not answers:
        return None, "no graph query or no answer"
    counted = question.function == "count"
    members = [f"m.member_{question.id}_{number}" for number in range(int(answers[0]))] if counted else answers
    lines: list[Line] = []
    for number, member in enumerate(members):
        terms: dict[int, str] = {}
        for node in query["nodes"]:
            if node["node_type"] == "literal":
                value, _, datatype = node["id"].partition("^^")
                value = _beside(value, node["function"])
                terms[node["nid"]] = f'"{value}"^^<{datatype}>'
            elif node["node_type"] == "class":
                key = member if node["question_node"] else f"m.between_{question.id}_{number}_{node['nid']}"
                terms[node["nid"]] = _entity(key) if key.startswith(("m.", "g.")) else _value(key)
                if terms[node["nid"]].startswith("<"):
                    lines.append((terms[node["nid"]], TYPE, _entity(node["id"])))
            else:
                terms[node["nid"]] = _entity(node["id"])
        lines += [(terms[edge["start"]], edge["relation"], terms[edge["end"]]) for edge in query["edges"]]
    if any(subject.startswith('"') for subject, _, _ in lines):
        return None, "a value as the subject of an edge"
    return tuple(dict.fromkeys(lines)), ""


def _beside(value: str, function: str) -> str:
    """A value that fulfils a comparison with `value`."""
    if function not in ("<", ">"):
        return value
    try:
        number = float(value)
    except ValueError:
        return value
    return str(int(number) + (1 if function == ">" else -1))


def qald_queries(path: Path) -> Iterator[AnnotatedQuery]:
    """The questions of QALD-9's train split."""
    for name, row in json.loads(path.read_text(encoding="utf-8")).items():
        yield AnnotatedQuery(str(name), row["sparql"], (), None, "there is no graph of DBpedia here")


def _entity(key: str) -> str:
    return f"<{FREEBASE}{key}>"


def _value(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def measure(queries: Sequence[AnnotatedQuery], folder: Path) -> dict[str, Any]:
    """The record of one set."""
    store = _graph(queries, folder)
    reasons: dict[str, Counter[str]] = {"not_read": Counter(), "without_subgraph": Counter()}
    counts: Counter[str] = Counter()
    sizes: list[int] = []
    for one in queries:
        try:
            form = from_sparql(one.sparql)
        except Outside as fault:
            reasons["not_read"][fault.reason] += 1
            continue
        except FormError:
            reasons["not_read"]["no standard SPARQL"] += 1
            continue
        counts["read"] += 1
        if one.triples is None or store is None:
            reasons["without_subgraph"][one.reason] += 1
            continue
        counts["with_annotation"] += 1
        try:
            result = execute(form, store, without_named=True)
        except (FormError, FormTimeout) as fault:
            reasons["without_subgraph"][type(fault).__name__ + ": " + _kind(str(fault))] += 1
            continue
        if not result.proof:
            reasons["without_subgraph"]["the form finds nothing in the graph of the annotations"] += 1
            continue
        found = {str(result.value)} if result.value is not None else _keys(store, result.nodes)
        counts["subgraph"] += 1
        counts["gold_found"] += found >= set(one.answers)
        counts["equal"] += found == set(one.answers)
        sizes.append(len(result.proof))
    if store is not None:
        store.close()
    total = len(queries)
    return {
        "queries": total,
        **{name: counts[name] for name in ("read", "with_annotation", "subgraph", "gold_found", "equal")},
        "share_read": round(counts["read"] / total, 4),
        "share_subgraph": round(counts["subgraph"] / total, 4) if sizes else None,
        "median_triples": statistics.median(sizes) if sizes else None,
        **{name: dict(counter.most_common()) for name, counter in reasons.items()},
    }


def _keys(store: KgStore, nodes: Sequence[int]) -> set[str]:
    return set(store.entity_keys(list(nodes)).values())


def _kind(message: str) -> str:
    """What a message says, without the names in it."""
    return "an element of the form is not in the graph" if "is not in this graph" in message else message[:80]


def _graph(queries: Sequence[AnnotatedQuery], folder: Path) -> KgStore | None:
    """The graph of the triples of all annotations; None without any."""
    lines = {line for one in queries for line in one.triples or ()}
    if not lines:
        return None
    source, out = folder / "graph.nt", folder / "kg"
    text = "".join(f"{subject} <{FREEBASE}{relation}> {thing} .\n" for subject, relation, thing in sorted(lines))
    source.write_text(text, encoding="utf-8")
    out.mkdir()
    build(out, options=KgOptions(files=(str(source),), format="freebase"))
    return KgStore.open(out)


def run(data: Path) -> dict[str, Any]:
    """The record of all sets."""
    sets = {
        "webqsp_train": list(webqsp_queries(data / "webqsp")),
        "grailqa_sample": list(grailqa_queries(data / "grailqa" / "tog" / "graliqa.json")),
        "qald9_train": list(qald_queries(data / "relation_linking" / "sling" / "qald_9.json")),
    }
    record: dict[str, Any] = {"conditions": conditions(SEED), "sets": {}}
    for name, queries in sets.items():
        with tempfile.TemporaryDirectory() as folder:
            record["sets"][name] = measure(queries, Path(folder))
    return record


def main() -> None:
    """Runs it and prints the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the data sets")
    parser.add_argument("--json", type=Path, help="file that the record is written to")
    given = parser.parse_args()
    text = json.dumps(run(given.data), indent=1, ensure_ascii=False) + "\n"
    if given.json:
        given.json.write_text(text, encoding="utf-8")
    print(text, end="")


if __name__ == "__main__":
    main()
