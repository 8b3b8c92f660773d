"""The nine tables of Northwind answer as the triples do that people made of them by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kgqa_core.config import KgOptions
from kgqa_core.kg.build import build
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.execute import execute
from kgqa_core.logic.parser import parse
from kgqa_core.workspace import Workspace

NAMES = {
    "contact name": "contact",
    "supplier": "supplied by",
    "birth date": "date of birth",
    "territory": "responsible for territory",
}
"""Relations of the tables, and what those of the triples are called."""

QUESTIONS = {
    "nw1": ("(JOIN (R [supplier]) <Chai>)", {"Exotic Liquids"}),
    "nw2": ("(JOIN (R [unit price]) <Tofu>)", {"23.25"}),
    "nw3": ("(ARGMAX (TYPE product) [unit price])", {"Côte de Blaye"}),
    "nw4": (
        "(JOIN [category] <Produce>)",
        {"Longlife Tofu", "Manjimup Dried Apples", "Rössle Sauerkraut", "Tofu", "Uncle Bob's Organic Dried Pears"},
    ),
    "nw5": ("(COUNT (JOIN [supplier] <Exotic Liquids>))", {"3"}),
    "nw6": ("(JOIN (R [reports to]) <Nancy Davolio>)", {"Andrew Fuller"}),
    "nw7": ("(JOIN [reports to] <Steven Buchanan>)", {"Anne Dodsworth", "Michael Suyama", "Robert King"}),
    "nw8": ("(ARGMIN (TYPE employee) [birth date])", {"Margaret Peacock"}),
    "nw9": ("(AND (TYPE supplier) (JOIN [country] <Japan>))", {"Mayumi's", "Tokyo Traders"}),
    "nw10": (
        "(JOIN [discontinued] true^^xsd:boolean)",
        {"Alice Mutton", "Chef Anton's Gumbo Mix", "Guaraná Fantástica", "Mishi Kobe Niku", "Perth Pasties",
         "Rössle Sauerkraut", "Singaporean Hokkien Fried Mee", "Thüringer Rostbratwurst"},
    ),
    "nw11": ("(JOIN (R [region]) <Westboro>)", {"Eastern"}),
    "nw12": ("(JOIN (R [phone]) <Speedy Express>)", {"(503) 555-9831"}),
    "nw13": ("(AND (JOIN [supplier] <Tokyo Traders>) (lt [unit price] 20))", {"Longlife Tofu"}),
    "nw14": ("(COUNT (AND (TYPE customer) (JOIN [country] <Mexico>)))", {"5"}),
}  # fmt: skip
"""A form for each question, and its answers."""


@pytest.fixture(scope="module")
def graphs(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The graph of the tables, and that of the triples."""
    case = shared_data.parent / "cases" / "real-northwind"
    if not case.is_dir():
        pytest.skip(f"{case} is not on this machine")
    stores = []
    for files in (sorted(case.glob("*.csv")), [case / "converted.ttl"]):
        out = tmp_path_factory.mktemp("graph")
        build(Workspace(out), options=KgOptions(files=tuple(map(str, files))))
        stores.append(KgStore.open(out))
    yield stores
    for store in stores:
        store.close()


def relations_by_type(store: KgStore) -> dict[tuple[str, str], int]:
    """How many triples of each relation begin at entities of each type, by name."""
    rows = store.connection.execute(
        "SELECT y.type, t.relation, count(*) FROM triples t JOIN types y ON y.entity = t.head GROUP BY ALL"
    ).fetchall()
    types, relations = store.names({kind for kind, _, _ in rows}), store.relation_names()
    return {(types[kind], relations[relation]): count for kind, relation, count in rows}


def keyed(store: KgStore, form: str) -> str:
    """A form with names as one with keys."""
    relations = dict(zip(store.relation_names(), store.relation_keys(), strict=True))
    parts = form.replace("[", "\0[").replace("]", "]\0").split("\0")
    form = "".join(
        f"<{relations.get(part[1:-1]) or relations[NAMES[part[1:-1]]]}>" if part.startswith("[") else part
        for part in parts
    )
    for name in {part.split(">")[0] for part in form.split("<")[1:]}:
        if name not in relations.values():
            form = form.replace(
                f"<{name}>", f"<{store.entity_keys(store.resolve([name])[name])[store.resolve([name])[name][0]]}>"
            )
    for kind in ("product", "employee", "supplier", "customer"):
        (entity,) = store.resolve([kind])[kind]
        form = form.replace(f"(TYPE {kind})", f"(TYPE <{store.entity_keys([entity])[entity]}>)")
    return form


def test_every_relation_of_the_triples_has_as_many_in_the_tables(graphs):
    tables, triples = map(relations_by_type, graphs)
    named = {(kind, NAMES.get(relation, relation) if kind != "product" or relation == "supplier" else relation): count
             for (kind, relation), count in tables.items()}  # fmt: skip
    assert {pair: named.get(pair) for pair in triples} == triples


@pytest.mark.parametrize("question", QUESTIONS)
def test_both_graphs_answer_alike(graphs, question):
    form, answers = QUESTIONS[question]
    for store in graphs:
        result = execute(parse(keyed(store, form)), store)
        assert answers == ({str(result.value)} if result.value is not None else set(store.names(result.nodes).values()))
