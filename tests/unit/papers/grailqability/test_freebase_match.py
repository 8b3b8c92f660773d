"""Forms of Freebase as query graphs over its ontology, on pairs that were drawn by hand."""

from __future__ import annotations

import json
from pathlib import Path

import networkx
import pytest

from kgqa_core.errors import InputError
from kgqa_core.papers.grailqability.builder.score import same_form
from kgqa_core.papers.grailqability.freebase_match import FreebaseMatcher, Ontology, evaluator

ONTOLOGY = {
    "fb_roles": "film.film film.film.directed_by film.director\nfilm.director film.director.film film.film\n"
    "film.film film.film.year type.datetime\npeople.person people.person.parents people.person\n",
    "fb_types": "film.director x people.person\nfilm.film x common.topic\ntype.datetime x type.value\n",
    "reverse_properties": "film.director.film\tfilm.film.directed_by\nfilm.film.directed_by\tfilm.director.film\n",
}
FILMS = "(JOIN film.film.directed_by m.01)"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in ONTOLOGY.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (FILMS, FILMS, True),
        (FILMS, "(JOIN film.film.directed_by m.02)", False),
        (f"(AND film.film {FILMS})", FILMS, True),  # the domain of the relation
        (f"(AND common.topic {FILMS})", FILMS, False),
        (FILMS, "(JOIN (R film.director.film) m.01)", True),  # the reverse property from the other end
        (FILMS, "(JOIN (R film.film.directed_by) m.01)", False),
        (f"(AND film.film (AND {FILMS} (JOIN film.film.directed_by m.02)))",
         f"(AND film.film (AND (JOIN film.film.directed_by m.02) {FILMS}))", True),
        (f"(COUNT {FILMS})", FILMS, False),
        (f"(ARGMAX {FILMS} film.film.year)", f"(ARGMAX (AND film.film {FILMS}) film.film.year)", True),
        (f"(ARGMAX {FILMS} film.film.year)", f"(ARGMIN {FILMS} film.film.year)", False),
        ("(ge film.film.year 2000^^x)", "(ge film.film.year 2000^^x)", True),
        ("(ge film.film.year 2000^^x)", "(gt film.film.year 2000^^x)", False),
        ("(ge film.film.year 2000^^x)", "(JOIN film.film.year 2000^^x)", False),
        # a director is a person: the parent's node takes the class that the relation wants
        ("(JOIN people.person.parents (JOIN (R film.film.directed_by) m.05))",
         "(JOIN people.person.parents (AND film.director (JOIN (R film.film.directed_by) m.05)))", True),
        (f"(TC {FILMS} film.film.year NOW)", FILMS, False),
        (FILMS, "(JOIN film.film.directed_by m.01", False),
        (FILMS, "(JOIN film.film.directed_by)", False),
        (FILMS, "(UNKNOWN m.01)", False),
        (FILMS, "", False),
        (FILMS, ")" + FILMS, False),
        (FILMS, "(" * 300 + FILMS, False),
    ],
)  # fmt: skip
def test_hand_drawn_pairs(folder: Path, one: str, other: str, equal: bool) -> None:
    matcher = FreebaseMatcher(Ontology.read(folder))
    assert matcher.same(one, other) == matcher.same(other, one) == equal


def test_without_an_ontology_forms_are_compared_by_their_shape(folder: Path) -> None:
    assert evaluator(None).same is same_form
    assert not same_form(f"(AND film.film {FILMS})", FILMS)
    assert evaluator(folder).same(f"(AND film.film {FILMS})", FILMS)


def test_a_folder_without_the_files_or_with_a_broken_row_is_refused(folder: Path) -> None:
    (folder / "fb_types").write_text("film.director\n", encoding="utf-8")
    with pytest.raises(InputError, match="fb_types row 1 has 1 fields, fewer than 3: 'film.director'"):
        Ontology.read(folder)
    (folder / "fb_roles").unlink()
    with pytest.raises(InputError, match="fb_roles is not there; the folder of the ontology holds fb_roles, fb_types"):
        Ontology.read(folder)


def test_it_equals_networkx_on_forms_of_grailqa(shared_data: Path) -> None:
    matcher = FreebaseMatcher(Ontology.read(shared_data / "freebase_ontology"))
    rows = json.loads((shared_data / "grailqa" / "tog" / "graliqa.json").read_text(encoding="utf-8"))
    forms = [row["s_expression"] for row in rows[:30]]
    graphs = [drawn(matcher, form) for form in forms]
    for one, first in zip(forms, graphs, strict=True):
        for other, second in zip(forms, graphs, strict=True):
            equal = networkx.is_isomorphic(first, second, node_match=lambda a, b: a == b, edge_match=same_edges)
            assert matcher.same(one, other) == equal, (one, other)


def same_edges(one: dict[int, dict[str, str]], other: dict[int, dict[str, str]]) -> bool:
    return sorted(edge["relation"] for edge in one.values()) == sorted(edge["relation"] for edge in other.values())


def drawn(matcher: FreebaseMatcher, form: str) -> networkx.MultiDiGraph:
    graph = matcher._read(form)
    assert graph is not None, form
    whole = networkx.MultiDiGraph()
    whole.add_nodes_from((number, {"node": node}) for number, node in enumerate(graph.nodes))
    for start, end, relation in graph.edges:
        whole.add_edge(start, end, relation=relation)
    return whole
