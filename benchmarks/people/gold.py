"""Gold answers of hand-written questions: the facts of a graph, what is computed from them, and files of questions.

The sets' `answers.py` read their graph files into `Graph` and write each question with its computation; nothing of the
system is used.  Names are unique in each graph.  Whatever lacks a fact is left out of conditions, ranks, sums and
averages.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import rdflib

Answer = set[str] | float | bool
EMPTY = ([], ["0"], ["no"])
RELATION, ENTITY, TYPE = "missing relation", "missing entity", "missing type"


class Graph:
    """The facts of one graph, by the names of things, the things of each type, and the questions about it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.values: dict[tuple[str, str], list[str]] = defaultdict(list)
        self.things: dict[str, list[str]] = defaultdict(list)
        self.relations: set[str] = set()
        self.rows: list[dict[str, object]] = []

    def add(self, subject: str, relation: str, value: object) -> None:
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if text:
            self.values[subject, relation].append(text)
            self.values[text, "~" + relation].append(subject)
            self.relations |= {relation, "~" + relation}

    def of(self, names: str | Iterable[str], *path: str) -> set[str]:
        """What a path of relations leads to; `~` goes against a relation."""
        found = {names} if isinstance(names, str) else set(names)
        for relation in path:
            assert relation in self.relations, relation
            found = {value for name in found for value in self.values.get((name, relation), [])}
        return found

    def all(self, kind: str) -> set[str]:
        assert kind in self.things, kind
        return set(self.things[kind])

    def test(self, names: str | Iterable[str], relation: str, good: Callable[[str], bool]) -> set[str]:
        """Of a type's things, or of names, those with a value that is good."""
        own = self.all(names) if isinstance(names, str) else set(names)
        return {name for name in own if any(good(value) for value in self.of(name, relation))}

    def eq(self, names: str | Iterable[str], relation: str, *values: str) -> set[str]:
        return self.test(names, relation, lambda value: value in values)

    def more(self, names: str | Iterable[str], relation: str, bound: float) -> set[str]:
        return self.test(names, relation, lambda value: float(value) > bound)

    def less(self, names: str | Iterable[str], relation: str, bound: float) -> set[str]:
        return self.test(names, relation, lambda value: float(value) < bound)

    def since(self, names: str | Iterable[str], relation: str, day: str) -> set[str]:
        return self.test(names, relation, lambda value: value >= day)

    def before(self, names: str | Iterable[str], relation: str, day: str) -> set[str]:
        return self.test(names, relation, lambda value: value < day)

    def says(self, names: str | Iterable[str], relation: str, word: str) -> set[str]:
        return self.test(names, relation, lambda value: word.lower() in value.lower())

    def lacks(self, names: str | Iterable[str], relation: str) -> set[str]:
        own = self.all(names) if isinstance(names, str) else set(names)
        return own - self.test(own, relation, lambda value: True)

    def numbers(self, names: Iterable[str], relation: str) -> list[float]:
        assert relation in self.relations, relation
        return [float(value) for name in names for value in self.values.get((name, relation), [])]

    def top(self, names: str | Iterable[str], relation: str, number: int = 1, low: bool = False) -> set[str]:
        """The first things by a number or a date, the largest unless low; ties are complete."""
        own = self.all(names) if isinstance(names, str) else set(names)
        assert relation in self.relations, relation
        keyed = {name: order(self.values[name, relation][0]) for name in own if self.values.get((name, relation))}
        bound = sorted(keyed.values(), reverse=not low)[:number][-1]
        return {name for name, key in keyed.items() if (key <= bound if low else key >= bound)}

    def tally(self, names: str | Iterable[str], relation: str, value: str = "", mean: bool = False) -> dict[str, float]:
        """By what a relation leads to: how many things, or the sum or the mean of a value of theirs."""
        own = self.all(names) if isinstance(names, str) else set(names)
        members = {group: own & self.of(group, "~" + relation) for group in self.of(own, relation)}
        found = {}
        for group, inside in members.items():
            given = self.numbers(inside, value) if value else [1.0] * len(inside)
            if given:
                found[group] = sum(given) / len(given) if mean else sum(given)
        return found

    def groups(self, names: str | Iterable[str], relation: str, value: str = "", mean: bool = False) -> set[str]:
        """The groups of `tally`, written as answers."""
        return {f"{group}: {plain(number)}" for group, number in self.tally(names, relation, value, mean).items()}


def order(value: str) -> tuple[float, str]:
    """What a value is ordered by."""
    try:
        return (float(value), "")
    except ValueError:
        return (0.0, value)


def plain(number: float) -> str:
    return f"{number:.10g}"


def mean(numbers: list[float]) -> float:
    return sum(numbers) / len(numbers)


def one(names: set[str]) -> float:
    """The only value as a number."""
    (value,) = names
    return float(value)


def days(graph: Graph, name: str, start: str, end: str) -> float:
    """Days from one date of a thing to another."""
    first, last = (date.fromisoformat(min(graph.of(name, relation))) for relation in (start, end))
    return (last - first).days


def percent(part: set[str], whole: set[str]) -> float:
    return 100 * len(part & whole) / len(whole)


def ask(graph: Graph, kind: str, question: str, answer: Answer, style: str = "") -> None:
    """A question with its answer: names, a number, or whether it is so."""
    if isinstance(answer, bool):
        texts = ["yes" if answer else "no"]
    elif isinstance(answer, set):
        texts = sorted(answer)
    else:
        texts = [plain(answer)]
    put(graph, question, style, answers=texts, answerable=True, empty=texts in EMPTY, type=kind)


def fill(
    graph: Graph, questions: Mapping[str, Mapping[str, Answer]], missing: Mapping[str, Mapping[str, str]]
) -> Graph:
    """Adds questions with their answers by type, and those without an answer, with what is missing, by reason.

    A question may begin with its style in brackets.
    """
    for kind, answers in questions.items():
        for text, answer in answers.items():
            ask(graph, kind, text.rpartition("] ")[2], answer, text.rpartition("] ")[0][1:])
    for reason, things in missing.items():
        for text, thing in things.items():
            no(graph, text.rpartition("] ")[2], reason, thing, text.rpartition("] ")[0][1:])
    return graph


def no(graph: Graph, question: str, reason: str, missing: str, style: str = "") -> None:
    """A question that the graph cannot answer."""
    put(graph, question, style, answers=[], answerable=False, empty=False, reason=reason, missing=missing)


def put(graph: Graph, question: str, style: str, **fields: object) -> None:
    order_ = "answers answerable empty reason missing type".split()
    tags = style.split() + ["lowercase"] * (question == question.lower())
    row = {"question": question} | {field: fields.get(field) for field in order_}
    graph.rows.append(row | {"style": tags})


def read_tables(name: str, folder: Path, tables: dict[str, str], separator: str | None = None) -> Graph:
    """The graph of a folder of CSV files: of each table the column that has the names of its things.

    separator: what stands between the values of a cell, if any cell has several.
    """
    graph = Graph(name)
    for table, naming in tables.items():
        for row in read_csv(folder / f"{table}.csv"):
            graph.things[table].append(row[naming])
            for column in row:
                if column != naming:
                    for value in row[column].split(separator) if separator else [row[column]]:
                        graph.add(row[naming], column, value)
    return graph


def read_csv(file: Path) -> list[dict[str, str]]:
    """The rows of a CSV file by its columns."""
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def read_triples(name: str, file: Path, ends: Mapping[str, str], symmetric: str = "") -> Graph:
    """The graph of a TSV file without types: those of a kind are the ones that have a value of its relation in ends.

    symmetric: a relation that holds both ways.
    """
    graph = Graph(name)
    for line in file.read_text(encoding="utf-8").splitlines():
        head, relation, tail = line.split("\t")
        graph.add(head, relation, tail)
        if relation == symmetric:
            graph.add(tail, relation, head)
    for kind, relation in ends.items():
        graph.things[kind] = [thing for thing, own in graph.values if own == relation]
    return graph


def read_keyed(
    name: str, tables: Mapping[str, tuple[Iterable[Mapping[str, object]], str]], links: dict[str, str]
) -> Graph:
    """The graph of tables whose first column is a key: of each its rows, and the column of names, if it has one.

    links: of a column that holds keys, the table whose keys they are.
    """
    graph = Graph(name)
    names = {table: {} for table in tables}
    for table, (rows, naming) in tables.items():
        for row in rows:
            key = str(next(iter(row.values())))
            names[table][key] = str(row[naming]) if naming else f"{table} {key}"
    for table, (rows, naming) in tables.items():
        for row, own in zip(rows, names[table].values(), strict=True):
            graph.things[table].append(own)
            for column in list(row)[1:]:
                if column != naming and row[column] not in (None, ""):
                    value = row[column]
                    graph.add(own, column, names[links[column]][str(value)] if column in links else value)
    return graph


def read_nodes(
    name: str, nodes: Iterable[Mapping[str, Any]], links: Iterable[Mapping[str, Any]], relation: str = "relation"
) -> Graph:
    """The graph of nodes with `id`, `type` and `name`, and of links with `source`, `target` and what relation names.

    Further values of a link are those of `source|target`.
    """
    graph, names = Graph(name), {}
    for node in nodes:
        names[node["id"]] = node["name"]
        graph.things[node["type"]].append(node["name"])
        for key in node.keys() - {"id", "type", "name"}:
            for value in node[key] if isinstance(node[key], list) else [node[key]]:
                graph.add(node["name"], key, value)
    for link in links:
        source, target = names[link["source"]], names[link["target"]]
        graph.add(source, link[relation], target)
        for key in link.keys() - {"source", "target", relation}:
            graph.add(f"{source}|{target}", key, link[key])
    return graph


def read_rdf(name: str, file: Path) -> Graph:
    """The graph of an RDF file: what has no label is called by its IRI's end, its words parted.

    Relations and types are called by their IRIs' ends.  What subclasses, inverse and symmetric relations imply holds.
    """
    graph, triples = Graph(name), rdflib.Graph().parse(file)
    label = {subject: str(value) for subject, value in triples.subject_objects(rdflib.RDFS.label)}
    inverse = set(triples.subject_objects(rdflib.OWL.inverseOf))
    inverse |= {(end, start) for start, end in inverse}
    inverse |= {(own, own) for own in triples.subjects(rdflib.RDF.type, rdflib.OWL.SymmetricProperty)}

    def end(term: rdflib.term.Node) -> str:
        return re.split("[/#]", str(term))[-1]

    def called(term: rdflib.term.Node) -> str:
        parted = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", end(term))
        return label.get(term, parted if isinstance(term, rdflib.URIRef) else str(term))

    facts = set(triples) | {(o, back, s) for s, p, o in triples for there, back in inverse if there == p}
    for subject, relation, value in sorted(facts):
        if relation == rdflib.RDF.type:
            for kind in triples.transitive_objects(value, rdflib.RDFS.subClassOf):
                graph.things[end(kind)].append(called(subject))
        elif relation != rdflib.RDFS.label:
            graph.add(called(subject), end(relation), called(value))
    return graph


def write(folder: Path, graphs: Iterable[Graph], check: bool = False) -> None:
    """Writes a file of questions for each graph of a set, and prints how many there are of each type.

    With check it writes nothing, and exits with an error where a file is another than would be written.
    """
    kinds: Counter[str] = Counter()
    for graph in graphs:
        rows = [{"id": f"{folder.name}-{graph.name}-{number:03d}"} | row for number, row in enumerate(graph.rows, 1)]
        path, text = folder / f"{graph.name}.jsonl", "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        if not check:
            path.write_text(text, encoding="utf-8")
        elif path.read_text(encoding="utf-8") != text:
            raise SystemExit(f"{path.name} is not what answers.py of {folder.name} writes")
        good = [row for row in rows if row["answerable"]]
        kinds.update(str(row["type"]) for row in good)
        empty = sum(bool(row["empty"]) for row in good)
        print(f"{graph.name}: {len(rows)} questions, {len(good)} answerable, {empty} empty")
    print(dict(kinds.most_common()))
