"""Queries of question sets with their gold answers, and the graphs that they run on.

There is no whole Freebase and no DBpedia here, so graphs of Freebase are made of the annotation, without the SPARQL: of
WebQSP the chain, constraints, times and orders, of GrailQA the graph query, with every gold answer in the place of the
answer and new nodes in between.  One graph holds all questions of a set, so that questions about one topic see each
other's triples.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kgqa_core.config import KgOptions, QuestionSource
from kgqa_core.datasets.derived.splits import hold_out
from kgqa_core.datasets.published.base import Reject
from kgqa_core.datasets.published.grailqa import FILES as GRAILQA
from kgqa_core.datasets.published.grailqa import GrailQuestion
from kgqa_core.datasets.published.lcquad import LCQUAD2
from kgqa_core.datasets.published.webqsp import FILES as WEBQSP
from kgqa_core.datasets.published.webqsp_parses import ParseConstraint, WebQspParse, WebQspQuestion
from kgqa_core.kg.build import build
from kgqa_core.kg.store import KgStore
from kgqa_core.kg.vocabulary import FREEBASE, XSD
from kgqa_core.workspace import Workspace

TYPE = "type.object.type"
SEED = 7
DEV_SHARE = 0.1
"""Share of WebQSP's train questions that its loader holds out as dev."""
SAMPLE = 1_000
"""Queries of ComplexWebQuestions at most."""

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


def webqsp_queries(folder: Path, split: str = "") -> Iterator[AnnotatedQuery]:
    """The parses of the train file; split: `train` or `dev` for those of one part as the loader divides it."""
    rows = WEBQSP.records(folder)
    questions = [row for source, row in rows if isinstance(row, WebQspQuestion) and source.split == "train"]
    held = hold_out([one.id for one in questions], DEV_SHARE, SEED) if split else set()
    for question in questions:
        if split and (question.id in held) != (split == "dev"):
            continue
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
    for _, question in GRAILQA.records(path):
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
    """The questions of QALD-9's train split, which have no answers here."""
    for name, row in json.loads(path.read_text(encoding="utf-8")).items():
        yield AnnotatedQuery(str(name), row["sparql"], (), None, "there is no graph of DBpedia here")


def lcquad_queries(path: Path) -> Iterator[AnnotatedQuery]:
    """The questions of LC-QuAD 2, whose files have no answers."""
    assert LCQUAD2.loader is not None
    for row in LCQUAD2.loader.read(QuestionSource(path=str(path)), SEED):
        if not isinstance(row, Reject):
            yield AnnotatedQuery(row["id"], row["sparql"], (), None, "its files have no answers")


def cwq_queries(folder: Path) -> Iterator[AnnotatedQuery]:
    """A sample of ComplexWebQuestions' train and dev files, where there is one."""
    rows = [row for name in ("train", "dev") for path in sorted(folder.glob(f"**/ComplexWebQuestions_{name}.json"))
            for row in json.loads(path.read_text(encoding="utf-8"))]  # fmt: skip
    for row in random.Random(SEED).sample(rows, min(SAMPLE, len(rows))):
        yield AnnotatedQuery(row["ID"], row["sparql"], (), None, "its rows have no annotation besides the query")


def _entity(key: str) -> str:
    return f"<{FREEBASE}{key}>"


def _value(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def graph_of(queries: Sequence[AnnotatedQuery], folder: Path) -> KgStore | None:
    """The graph of the triples of all annotations; None without any."""
    lines = {line for one in queries for line in one.triples or ()}
    if not lines:
        return None
    source, out = folder / "graph.nt", folder / "kg"
    text = "".join(f"{subject} <{FREEBASE}{relation}> {thing} .\n" for subject, relation, thing in sorted(lines))
    source.write_text(text, encoding="utf-8")
    out.mkdir()
    build(Workspace(out), options=KgOptions(files=(str(source),), format="freebase"))
    return KgStore.open(out)


def wikidata_mini(data: Path, folder: Path) -> KgStore:
    """The small Wikidata."""
    out = folder / "kg"
    out.mkdir()
    names = ("triples.tsv", "labels.en.tsv", "qualifiers.tsv")
    build(Workspace(out), options=KgOptions(files=tuple(str(data / "wikidata_mini" / name) for name in names)))
    return KgStore.open(out)


def one_triple(data: Path, folder: Path, queries: Sequence[AnnotatedQuery]) -> KgStore:
    """A graph that answers nothing: queries that run on it are read, and no more."""
    nothing = AnnotatedQuery("", "", (), ((_entity("m.0"), "nothing", _entity("m.1")),))
    store = graph_of([nothing], folder)
    assert store is not None
    return store


@dataclass(frozen=True)
class QuerySet:
    """A set: its queries and its graph.  described: what the graph is, for the table."""

    queries: Callable[[Path], Iterator[AnnotatedQuery]]
    described: str
    graph: Callable[[Path, Path, Sequence[AnnotatedQuery]], KgStore | None] = lambda data, folder, queries: graph_of(
        queries, folder
    )


SETS: Mapping[str, QuerySet] = {
    "webqsp_train": QuerySet(lambda data: webqsp_queries(data / "webqsp", "train"), "its annotation"),
    "webqsp_dev": QuerySet(lambda data: webqsp_queries(data / "webqsp", "dev"), "its annotation"),
    "cwq_sample": QuerySet(cwq_queries, "none: its files are not here"),
    "grailqa_sample": QuerySet(
        lambda data: grailqa_queries(data / "grailqa" / "tog" / "graliqa.json"), "its graph queries"
    ),
    "lcquad2_test": QuerySet(
        lambda data: lcquad_queries(data / "lcquad2" / "ibm_genrl" / "lcquad2_test_validated.jsonl"),
        "`wikidata_mini`; its files have no answers",
        lambda data, folder, queries: wikidata_mini(data, folder),
    ),
    "qald9_train": QuerySet(
        lambda data: qald_queries(data / "relation_linking" / "sling" / "qald_9.json"),
        "none of DBpedia here: read and run on one triple",
        one_triple,
    ),
}
"""The sets by name."""
