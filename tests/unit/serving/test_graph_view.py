"""A graph looked into: search, entity pages, neighbourhoods, paths and forms, by hand and from several threads."""

from __future__ import annotations

import contextlib
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kgqa_core.errors import FormError, FormTimeout, GraphMismatch, InputError
from kgqa_core.kg.store import KgStore
from kgqa_core.serving.graph_records import GraphRecord
from kgqa_core.serving.graph_view import GraphView
from kgqa_core.serving.limits import LONGEST, LONGEST_FORM, MOST_FACTS
from kgqa_core.serving.neighbours import RULE, _shares
from kgqa_core.workspace import Workspace
from tests.support.question_graph import X
from tests.support.served_graph import HOSTILE, GraphFolders, films, offices


@pytest.fixture(scope="module")
def office_view(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GraphView]:
    found = offices(tmp_path_factory.mktemp("offices")).view()
    yield found
    found.close()


# -- search --------------------------------------------------------------------------------------------------------


def found(view: GraphView, text: str, limit: int = 20) -> list[tuple[str, str]]:
    return [(one.name, one.how) for one in view.search(text, limit).matches]


def test_a_whole_name_comes_before_names_that_begin_so(view: GraphView) -> None:
    assert found(view, "norland") == [("Norland", "exact"), ("Norland City", "prefix")]


def test_a_name_is_found_while_it_is_typed(view: GraphView) -> None:
    names = found(view, "norl")
    assert names == [("Norland", "prefix"), ("Norland City", "prefix")]
    degrees = [one.degree for one in view.search("n", 100).matches if one.how == "prefix"]
    assert len(degrees) > 5 and degrees == sorted(degrees, reverse=True), "the best connected first"


def test_a_key_is_found_and_a_part_of_a_name(view: GraphView) -> None:
    [best, *_] = view.search(f"{X}c0").matches
    assert (best.key, best.name, best.how, best.types) == (f"{X}c0", "Norland", "key", ("country",))
    assert found(view, "Quibbler") == [("Zoltan Quibbler", "part")]
    assert len(found(view, "Stone")) == 16, "a part that many names have"
    assert found(view, "stone ada") == [("Ada Stone", "part")]


def test_typing_errors_are_forgiven_where_nothing_else_is_found(view: GraphView) -> None:
    assert found(view, "Norlnad") == [("Norland", "typo"), ("Norland City", "typo")]
    assert found(view, "xyzzyxyzzy") == [] and found(view, "!!!") == []


def test_the_limit_of_a_search_is_held_and_says_that_there_is_more(view: GraphView) -> None:
    result = view.search("night", 5)
    assert len(result.matches) == 5 and result.more
    whole = view.search("night", 100)
    assert len(whole.matches) == 40 and not whole.more
    assert whole.matches[:5] == result.matches


# -- entities ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [f"{X}c0", "Norland", "  Norland ", "NORLAND"])
def test_an_entity_is_meant_by_key_or_name(view: GraphView, name: str) -> None:
    page = view.entity(name)
    assert page.entity.key == f"{X}c0" and [kind.name for kind in page.types] == ["country"]
    facts = {(fact.relation.name, fact.tail.name) for fact in page.facts.facts}
    assert {("capital", "Norland City"), ("borders", "Sudland"), ("population", "1000000")} <= facts
    assert page.degree == page.facts.total + page.incoming.total
    assert {fact.tail.key for fact in page.incoming.facts} == {f"{X}c0"}
    counts = {one.name: one.count for one in page.facts.relations}
    assert counts == Counter(fact.relation.name for fact in page.facts.facts)
    population = next(fact.tail for fact in page.facts.facts if fact.relation.name == "population")
    assert population.kind == "literal" and str(population.datatype).endswith("integer")


def test_pages_of_facts_follow_each_other_and_one_relation_can_be_chosen(view: GraphView) -> None:
    whole = view.entity("Ada Stone", limit=100).incoming
    assert whole.total == len(whole.facts) > 8
    parts = [
        fact.triple
        for offset in range(0, whole.total, 3)
        for fact in view.entity("Ada Stone", limit=3, offset=offset).incoming.facts
    ]
    assert parts == [fact.triple for fact in whole.facts]
    directed = view.entity("Ada Stone", relation="directed by").incoming
    assert directed.total == 6 and {fact.relation.key for fact in directed.facts} == {f"{X}directed_by"}
    assert view.entity("Ada Stone", relation=f"{X}directed_by").incoming == directed
    assert view.entity("Ada Stone", offset=10_000).incoming.facts == ()
    only = view.entity("Ada Stone", direction="out")
    assert only.incoming.facts == () and only.incoming.total == whole.total and only.facts.facts


def test_a_literal_has_the_facts_that_lead_to_it(view: GraphView) -> None:
    page = view.entity("1000000")
    assert page.entity.kind == "literal" and page.facts.total == 0 and page.types == ()
    assert [fact.head.name for fact in page.incoming.facts] == ["Norland"]
    assert view.entity("1000000", relation="borders").incoming.total == 0


def test_qualifiers_and_units_are_told(office_view: GraphView) -> None:
    [fact] = [one for one in office_view.entity("ann").facts.facts if one.relation.key == "office"]
    stated = {one.relation.key: one.value.name for one in fact.qualifiers[0]}
    assert stated == {"P580": "2001", "P582": "2008-06-01", "of": "paris"} and fact.rank == "normal"
    [height] = [one.tail for one in office_view.entity("ann").facts.facts if one.relation.key == "height"]
    assert (height.name, height.unit) == ("180 Q174728", "Q174728")


def test_entities_of_one_name_are_told_apart(tmp_path: Path) -> None:
    folders = films(tmp_path / "two")
    extra = tmp_path / "twice"
    extra.mkdir()
    from kgqa_core.config import DkgOptions, KgOptions
    from kgqa_core.dkg.export import export
    from kgqa_core.kg.build import build
    from kgqa_core.linking.dictionary import build as build_mentions

    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    lines = [f'<{X}a> {label} "Paris" .', f'<{X}b> {label} "Paris" .']
    lines += [f"<{X}b> <{X}in> <{X}c> .", f"<{X}d> <{X}in> <{X}b> .", f"<{X}a> <{X}in> <{X}e> ."]
    (extra / "g.nt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for name in ("kg", "dkg", "mentions"):
        (extra / name).mkdir()
    build(Workspace(extra / "kg"), options=KgOptions(files=(str(extra / "g.nt"),)))
    export(Workspace(extra / "dkg"), kg=extra / "kg", options=DkgOptions())
    build_mentions(Workspace(extra / "mentions"), kg=extra / "kg")
    view = GraphView.open(extra / "kg", extra / "dkg", extra / "mentions")
    page = view.entity("Paris")
    assert page.entity.key == f"{X}b", "the best connected"
    assert [other.key for other in page.others] == [f"{X}a"]
    view.close()
    with pytest.raises(GraphMismatch, match="make them anew"):
        GraphView.open(extra / "kg", folders.dkg, folders.mentions)


@pytest.mark.parametrize(
    "call",
    [lambda v: v.entity("Norlnd"), lambda v: v.neighbourhood("Norlnd"), lambda v: v.paths("Norlnd", "Sudland"),
     lambda v: v.paths("Sudland", "Norlnd")],
)  # fmt: skip
def test_an_unknown_name_is_told_with_the_nearest(view: GraphView, call: Callable[[GraphView], object]) -> None:
    with pytest.raises(InputError, match="'Norlnd' is not in graph.*did you mean 'Norland'"):
        call(view)


def test_an_unknown_relation_is_told_with_the_nearest(view: GraphView) -> None:
    with pytest.raises(InputError, match="relation 'directd by' is not in this graph; did you mean 'directed by'"):
        view.entity("Ada Stone", relation="directd by")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda v: v.search("a", 0), "limit is 0; give 1 to 100"),
        (lambda v: v.search("a", 101), "limit is 101"),
        (lambda v: v.search(" "), "is empty"),
        (lambda v: v.search("a" * (LONGEST + 1)), "has 1,001 characters; give at most 1,000"),
        (lambda v: v.search("a\ud800"), "half a character"),
        (lambda v: v.entity("Norland", limit=MOST_FACTS + 1), "limit is 501"),
        (lambda v: v.entity("Norland", offset=-1), "offset is -1"),
        (lambda v: v.neighbourhood("Norland", 0), "limit is 0"),
        (lambda v: v.paths("Norland", "Sudland", 4), "max_hops is 4; give 1 to 3"),
        (lambda v: v.paths("Norland", ""), "is empty"),
        (lambda v: v.query("(" * (LONGEST_FORM + 1)), "has 20,001 characters"),
        (lambda v: v.query("x", 0), "limit is 0"),
    ],
)
def test_what_is_beyond_a_limit_is_refused_with_the_value(
    view: GraphView, call: Callable[[GraphView], object], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        call(view)


# -- pictures and paths --------------------------------------------------------------------------------------------


def test_a_small_neighbourhood_is_shown_whole(view: GraphView) -> None:
    picture = view.neighbourhood("Norland")
    assert picture.left_out == () and picture.total == len(picture.edges)
    assert picture.nodes[0].id == picture.centre and picture.nodes[0].name == "Norland"
    ids = [node.id for node in picture.nodes]
    assert len(ids) == len(set(ids))
    assert all(edge.head in ids and edge.tail in ids and picture.centre in (edge.head, edge.tail)
               for edge in picture.edges)  # fmt: skip
    assert not any(edge.relation.inverse for edge in picture.edges)


def test_a_hub_is_cut_by_turns_of_its_relations_and_what_is_left_out_is_counted(view: GraphView) -> None:
    whole = view.neighbourhood("Ada Stone", 500)
    cut = view.neighbourhood("Ada Stone", 6)
    assert len(cut.edges) == 6 and cut.total == whole.total and cut.rule == RULE
    assert sum(one.count for one in cut.left_out) == whole.total - 6
    kinds = Counter((edge.relation.key, edge.tail == cut.centre) for edge in cut.edges)
    assert len(kinds) == len(Counter((edge.relation.key, edge.tail == whole.centre) for edge in whole.edges))
    every = {node.id: node for node in whole.nodes}
    starring = [edge.head for edge in whole.edges if edge.relation.key == f"{X}starred_actors"]
    shown = [edge.head for edge in cut.edges if edge.relation.key == f"{X}starred_actors"]
    best = sorted(starring, key=lambda i: (-every[i].degree, i))[: len(shown)]
    assert shown == best


def test_shares_are_turns_of_one() -> None:
    import numpy as np

    for limit in range(20):
        counts = np.array([5, 1, 0, 9])
        turns, order = [0, 0, 0, 0], [0, 1, 2, 3]
        while sum(turns) < min(limit, 15):
            for place in order:
                if turns[place] < counts[place] and sum(turns) < limit:
                    turns[place] += 1
        assert _shares(counts, limit).tolist() == turns


def test_paths_join_two_entities(view: GraphView) -> None:
    result = view.paths("Norland City", "Sudland")
    assert result.hops == 2 and result.complete
    texts = {tuple((step.name, step.inverse) for step in path.relations) for path in result.paths}
    assert (("country", False), ("borders", False)) in texts and (("capital", True), ("borders", True)) in texts
    assert all([node.name for node in path.example] == ["Norland City", "Norland", "Sudland"] for path in result.paths)
    assert len(view.paths("Norland City", "Sudland", limit=1).paths) == 1
    assert view.paths("Norland City", "Sudland", max_hops=1).hops is None
    assert view.paths("Norland", "norland").hops == 0


# -- forms ---------------------------------------------------------------------------------------------------------


def test_a_form_is_answered_with_its_proof(view: GraphView) -> None:
    result = view.query("(JOIN (R capital) Norland)")
    assert [node.name for node in result.answers] == ["Norland City"] and result.value is None
    assert [(f.head.name, f.relation.name, f.tail.name) for f in result.proof] == [
        ("Norland", "capital", "Norland City")
    ]
    assert view.query("(COUNT (TYPE country))").value == 8
    shared = view.query("(SHARE (TYPE country) (JOIN capital (JOIN (R capital) Norland)))")
    assert (shared.value, shared.unit) == (12.5, "%")
    table = view.query("(VALUES Norland capital)")
    assert [node.name for node in table.answers] == ["Norland: Norland City"] and len(table.proof) == 1
    cut = view.query("(TYPE film)", limit=3)
    assert len(cut.answers) == 3 and cut.more
    empty = view.query("(JOIN (R capital) (TYPE film))")
    assert empty.answers == () and "capital" in str(empty.why)


def test_qualifiers_are_in_the_proof(office_view: GraphView) -> None:
    result = office_view.query("(JOIN office mayor (at P580 2005^^xsd:gYear))")
    assert [node.key for node in result.answers] == ["ann"]
    assert {one.relation.key for one in result.proof[0].qualifiers[0]} == {"P580", "P582", "of"}


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ("(JION a b)", "there is no operator 'JION'; did you mean 'JOIN'"),
        ("(COUNT", "never closed"),
        ("(JOIN capital Norlnd)", "'Norlnd' is not in this graph; did you mean 'Norland'"),
        ("(JOIN capitl Norland)", "did you mean 'capital'"),
    ],
)
def test_a_bad_form_gives_the_message_of_the_parser(view: GraphView, form: str, message: str) -> None:
    with pytest.raises(FormError, match=message.replace("(", r"\(")):
        view.query(form)


def endless(store: KgStore, *given: object, **options: object) -> None:
    store.connection.execute("SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range > b.range")


def test_what_takes_too_long_is_interrupted_and_the_view_lives_on(
    view: GraphView, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("kgqa_core.serving.graph_view.look_up", endless)
        with pytest.raises(FormTimeout, match=r"looking for '\(COUNT .*' took longer than 0.2 s"):
            view.query("(COUNT (TYPE film))", seconds=0.2)
        patched.setattr("kgqa_core.serving.limits.SCAN_SECONDS", 0.2)
        patched.setattr("kgqa_core.serving.graph_view.with_words", endless)
        assert found(view, "Norlnad"), "names that are too many to be read are left out"
    assert view.query("(COUNT (TYPE film))").value == 40


# -- data and threads ----------------------------------------------------------------------------------------------


def test_hostile_labels_are_data(view: GraphView) -> None:
    page = view.entity(f"{X}evil")
    assert page.entity.name == HOSTILE
    assert view.entity(HOSTILE).entity == page.entity
    assert [one.name for one in view.search("evil").matches] == [HOSTILE]
    records: list[GraphRecord] = [
        page,
        view.search("evil"),
        view.neighbourhood(HOSTILE),
        view.paths(HOSTILE, "Sudland"),
    ]
    for record in records:
        text = json.dumps(record.to_json())
        assert "\n" not in text and "\x1b" not in text and json.loads(text) == record.to_json()
        assert json.dumps(HOSTILE) in text
    for text in ("'; DROP TABLE triples; --", "a\x00b", "%", "_", "$1", "[", "\u202e"):
        with pytest.raises(InputError):
            view.entity(text)
        view.search(text)


@pytest.mark.slow
def test_many_threads_get_what_one_gets(folders: GraphFolders) -> None:
    view = folders.view()
    calls: list[Callable[[], GraphRecord]] = []
    for i in range(8):
        calls += [
            lambda i=i: view.entity(f"{X}c{i}"),
            lambda i=i: view.search(f"night {i}"),
            lambda i=i: view.neighbourhood(f"{X}p{i}", 7),
            lambda i=i: view.paths(f"{X}f{i}", f"{X}p{i}"),
        ]
    alone = [call() for call in calls]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(3):
            assert list(pool.map(lambda call: call(), calls)) == alone
    view.close()


def test_a_call_that_is_interrupted_ends_no_other(view: GraphView) -> None:
    faults: list[Exception] = []
    over = threading.Event()

    def interrupted() -> None:
        while not over.is_set():
            with contextlib.suppress(FormTimeout):
                view.query("(COUNT (TYPE film))", seconds=0)

    thread = threading.Thread(target=interrupted)
    thread.start()
    try:
        for _ in range(20):
            assert view.query("(COUNT (TYPE film))").value == 40
    except Exception as fault:
        faults.append(fault)
    over.set()
    thread.join()
    assert faults == []


def test_closing_a_view_leaves_the_store_of_others_open(folders: GraphFolders) -> None:
    from kgqa_core.dkg.csr import Dkg
    from kgqa_core.linking.mentions import MentionDictionary

    with KgStore.open(folders.kg) as store:
        view = GraphView(store, Dkg.open(folders.dkg), MentionDictionary(folders.mentions))
        assert view.entity("Norland").entity.name == "Norland"
        view.close()
        assert store.resolve(["Norland"])["Norland"]
