"""`kg.subset`: the neighbourhood of some entities out of a dump, against a breadth-first search in plain Python."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgqa_core.config import KgOptions, SubsetOptions
from kgqa_core.errors import KgInputError, KgqaError
from kgqa_core.kg.build import build
from kgqa_core.kg.client.pass_folder import PassFolder
from kgqa_core.kg.store import KgStore
from kgqa_core.kg.subset.subset import SubsetResult, subset_of_dump
from kgqa_core.workspace import Workspace
from tests.support.subset_oracle import Statement, neighbourhood

WD, WDT = "http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/direct/"
LABEL = "http://www.w3.org/2000/01/rdf-schema#label"


def wikidata_line(statement: Statement) -> str:
    subject, relation, thing = statement
    end = f"<{WD}{thing}>" if thing.startswith("Q") else f'"{thing}"'
    return f"<{WD}{subject}> <{WDT}{relation}> {end} .\n"


def label_line(key: str, language: str = "en") -> str:
    return f'<{WD}{key}> <{LABEL}> "name of {key}"@{language} .\n'


def subset(
    folder: Path, files: list[Path], seeds: list[str], work: str = "work", **options: Any
) -> tuple[SubsetResult, Path]:
    result = subset_of_dump([str(file) for file in files], seeds, SubsetOptions(**options), PassFolder(folder / work))
    out = folder / ("subset.json" if result.counts["format"] == "wikidata-json" else "subset.nt")
    result.write(out)
    return result, out


def statements_in(path: Path) -> set[Statement]:
    """Facts of a file of `wikidata_line`s."""
    found = set()
    for line in path.read_text(encoding="utf-8").splitlines():
        subject, predicate, thing = line.removesuffix(" .").split(" ", 2)
        if predicate.startswith(f"<{WDT}"):
            found.add((subject[len(WD) + 1 : -1], predicate[len(WDT) + 1 : -1], thing.strip('<>"').removeprefix(WD)))
    return found


def labelled_in(path: Path) -> set[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return {line.split(" ")[0][len(WD) + 1 : -1] for line in lines if f"<{LABEL}>" in line}


entities = st.integers(1, 9).map(lambda number: f"Q{number}")
graphs = st.lists(
    st.tuples(entities, st.sampled_from(["P1", "P2", "P31"]), st.one_of(entities, st.sampled_from(["one", "two"]))),
    min_size=1,
    max_size=30,
    unique=True,
)


@settings(max_examples=60, deadline=None)
@given(
    graph=graphs,
    seeds=st.lists(entities, min_size=1, max_size=2, unique=True),
    hops=st.integers(1, 3),
    max_degree=st.integers(0, 3),
    direction=st.sampled_from(["both", "forward"]),
    relations=st.sampled_from([(), ("P1",), ("P1", "P31")]),
    packed=st.booleans(),
)
def test_a_subset_of_a_random_graph_is_the_breadth_first_search_of_the_oracle(
    tmp_path_factory: pytest.TempPathFactory,
    graph: list[Statement],
    seeds: list[str],
    hops: int,
    max_degree: int,
    direction: str,
    relations: tuple[str, ...],
    packed: bool,
) -> None:
    folder = tmp_path_factory.mktemp("subset")
    text = "".join(map(wikidata_line, graph)) + "".join(label_line(f"Q{number}") for number in range(1, 10))
    text += "".join(label_line(key) for key in ("P1", "P2", "P31"))
    dump = folder / ("dump.nt.gz" if packed else "dump.nt")
    dump.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    expected = neighbourhood(
        graph, seeds, hops=hops, max_degree=max_degree, both=direction == "both", relations=relations
    )
    options = dict(hops=hops, max_degree=max_degree, direction=direction, relations=relations)
    if not expected.statements:
        with pytest.raises(KgInputError, match="none of the"):
            subset(folder, [dump], seeds, **options)
        return
    result, out = subset(folder, [dump], seeds, **options)
    assert statements_in(out) == expected.statements
    assert labelled_in(out) == expected.entities | expected.types | expected.relations
    assert [hop["entities_reached"] for hop in result.counts["by_hop"]] == expected.reached_by_hop
    assert result.counts["runs_cut"] == expected.runs_cut
    assert result.not_found == [seed for seed in seeds if seed not in expected.ends]


def claim(relation: str, value: Any, rank: str = "normal", **more: Any) -> dict[str, Any]:
    if isinstance(value, str) and value.startswith("Q"):
        data = {"type": "wikibase-entityid", "value": {"entity-type": "item", "id": value}}
    elif isinstance(value, tuple):
        data = {"type": "quantity", "value": {"amount": value[0], "unit": WD + value[1]}}
    else:
        data = {"type": "string", "value": value}
    return {"mainsnak": {"snaktype": "value", "property": relation, "datavalue": data}, "rank": rank, **more}


def entity(key: str, *claims: dict[str, Any], **more: Any) -> dict[str, Any]:
    by_property: dict[str, list[Any]] = defaultdict(list)
    for one in claims:
        by_property[one["mainsnak"]["property"]].append(one)
    kind = "item" if key.startswith("Q") else "property"
    labels = {language: {"language": language, "value": f"{key} {language}"} for language in ("en", "de")}
    return {"type": kind, "id": key, "labels": labels, "claims": dict(by_property), "sitelinks": {"x": 1}, **more}


def json_dump(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("[\n" + ",\n".join(json.dumps(line) for line in lines) + "\n]\n", encoding="utf-8")
    return path


def by_id(path: Path) -> dict[str, dict[str, Any]]:
    return {line["id"]: line for line in map(json.loads, path.read_text(encoding="utf-8").splitlines())}


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """Q1 is seeded; Q2 is one hop away, Q3 two, Q4 three; Q9 is nothing's neighbour."""
    qualifiers = {"P580": [claim("P580", "2001")["mainsnak"]], "P642": [claim("P642", "Q7")["mainsnak"]]}
    office = claim("P39", "Q2", qualifiers=qualifiers)
    return json_dump(
        tmp_path / "dump.json",
        entity("Q1", office, claim("P31", "Q5"), claim("P2048", ("+1.8", "Q11")), claim("P19", "Q8", "deprecated"),
               claim("P27", "Q9", references=[{"x": 1}]), claim("P27", "Q3", "preferred")),
        entity("Q2", claim("P31", "Q6")),
        entity("Q3", claim("P36", "Q4"), claim("P1", "text of an entity of the last hop")),
        entity("Q4"), entity("Q5"), entity("Q6"), entity("Q7"), entity("Q8"), entity("Q9"), entity("Q11"),
        *(entity(key) for key in ("P39", "P580", "P642", "P31", "P27", "P19", "P36", "P2048", "P5000")),
    )  # fmt: skip


def test_entities_of_a_json_dump_keep_the_claims_of_the_subset_with_qualifiers_and_ranks(
    people: Path, tmp_path: Path
) -> None:
    result, out = subset(tmp_path, [people], ["Q1"], hops=1)
    found = by_id(out)
    assert set(found["Q1"]["claims"]) == {"P39", "P31", "P2048", "P27"}
    (office,) = found["Q1"]["claims"]["P39"]
    assert set(office["qualifiers"]) == {"P580", "P642"}
    assert [one["rank"] for one in found["Q1"]["claims"]["P27"]] == ["preferred"]
    assert "sitelinks" not in found["Q1"]
    assert found["Q2"]["claims"] == {"P31": [claim("P31", "Q6")]}, "the types of an entity that is reached"
    assert found["Q3"]["claims"] == {}
    names = {"Q7": "of a qualifier", "Q11": "a unit", "Q6": "a type of what is reached"}
    assert names.keys() <= found.keys()
    assert found.keys() & {"Q4", "Q8", "Q9"} == set()
    assert {key for key in found if key.startswith("P")} == {"P39", "P580", "P642", "P31", "P27", "P2048"}
    kept = result.counts["kept"]
    assert {name: kept[name] for name in ("edges", "literals", "types", "relation_names")} == {
        "edges": 3, "literals": 1, "types": 1, "relation_names": 6
    }  # fmt: skip


def test_a_subset_of_json_builds_the_graph_that_the_whole_dump_has_around_the_seed(
    people: Path, tmp_path: Path
) -> None:
    _, out = subset(tmp_path, [people], ["Q1"], hops=1)
    for name, file in (("whole", people), ("part", out)):
        (tmp_path / name).mkdir()
        build(Workspace(tmp_path / name), options=KgOptions(files=(str(file),)))
    query = """
        SELECT h.key, r.key, t.key, t.datatype FROM triples x JOIN entities h ON h.id = x.head
        JOIN relations r ON r.id = x.relation JOIN entities t ON t.id = x.tail WHERE h.key = 'Q1' ORDER BY ALL"""
    with KgStore.open(tmp_path / "whole") as whole, KgStore.open(tmp_path / "part") as part:
        assert part.connection.execute(query).fetchall() == whole.connection.execute(query).fetchall()


def test_names_are_kept_in_the_languages_that_are_wanted(people: Path, tmp_path: Path) -> None:
    _, out = subset(tmp_path, [people], ["Q1"], hops=1, languages=("de",))
    assert {language for one in by_id(out).values() for language in one["labels"]} == {"de"}
    dump = tmp_path / "dump.nt"
    dump.write_text(wikidata_line(("Q1", "P1", "Q2")) + label_line("Q1", "en") + label_line("Q1", "de"))
    _, out = subset(tmp_path, [dump], ["Q1"], work="other", languages=("DE",))
    assert [line for line in out.read_text().splitlines() if "@" in line] == [label_line("Q1", "de").strip()]


def test_lines_stand_as_they_are_in_the_dump(tmp_path: Path) -> None:
    odd = f'<{WD}Q1>\t<{WDT}P1> "caf\\u00E9 \\"x\\"" . # a comment'
    dump = tmp_path / "truthy.nt"
    dump.write_text(f"# head\n\n{odd}\r\n" + wikidata_line(("Q8", "P1", "Q9")) + wikidata_line(("Q1", "P1", "Q2")))
    _, out = subset(tmp_path, [dump], ["Q1"])
    assert out.read_text().splitlines() == [odd, wikidata_line(("Q1", "P1", "Q2")).strip()]


def test_a_hub_is_reached_and_its_long_runs_are_cut_in_one_direction_only(tmp_path: Path) -> None:
    citizens = [(f"Q{number}", "P27", "Q2") for number in range(100, 120)]
    graph = [("Q1", "P27", "Q2"), ("Q2", "P36", "Q3"), ("Q4", "P47", "Q2"), *citizens]
    dump = tmp_path / "dump.nt"
    dump.write_text("".join(map(wikidata_line, graph)))
    result, out = subset(tmp_path, [dump], ["Q1"], hops=2, max_degree=5)
    assert statements_in(out) == {("Q1", "P27", "Q2"), ("Q2", "P36", "Q3"), ("Q4", "P47", "Q2")}
    assert (result.counts["hubs_cut"], result.counts["runs_cut"]) == (1, 1)
    assert result.counts["by_hop"][1]["edges_cut"] == 21


def test_passes_that_are_finished_are_not_repeated(people: Path, tmp_path: Path) -> None:
    work = PassFolder(tmp_path / "work")
    subset_of_dump([str(people)], ["Q1"], SubsetOptions(hops=1), work)
    assert work.done == []
    again = PassFolder(tmp_path / "work")
    subset_of_dump([str(people)], ["Q1"], SubsetOptions(hops=1), again)
    assert again.done == ["edges-0000", "hops", "kept-0000"]
    others = PassFolder(tmp_path / "work")
    subset_of_dump([str(people)], ["Q2"], SubsetOptions(hops=2), others)
    assert others.done == ["edges-0000"], "other questions begin with the edges"
    people.write_text(people.read_text().replace("Q11", "Q12"))
    changed = PassFolder(tmp_path / "work")
    subset_of_dump([str(people)], ["Q1"], SubsetOptions(hops=1), changed)
    assert changed.done == []


def test_a_pass_that_is_killed_leaves_the_finished_ones_and_nothing_half(
    people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("kgqa_core.kg.subset.subset.write_part", die)
        with pytest.raises(KeyboardInterrupt):
            subset(tmp_path, [people], ["Q1"])
    names = sorted(path.name.rpartition("-")[0] for path in (tmp_path / "work").iterdir())
    assert names == ["edges-0000", "hops"]
    result, _ = subset(tmp_path, [people], ["Q1"])
    assert result.counts["passes_found_done"] == ["edges-0000", "hops"]


def test_freebase_types_are_read_from_both_of_its_relations_and_ids_stay(tmp_path: Path) -> None:
    ns = "http://rdf.freebase.com/ns/"
    dump = tmp_path / "freebase-rdf.gz"
    lines = [
        ("m.0a", "people.person.place_of_birth", "m.0b"), ("m.0b", "type.object.type", "location.location"),
        ("location.location", "type.type.instance", "m.0b"), ("location.location", "type.type.instance", "m.0z"),
    ]  # fmt: skip
    text = "".join(f"<{ns}{s}>\t<{ns}{p}>\t<{ns}{o}>\t.\n" for s, p, o in lines)
    text += f'<{ns}m.0b>\t<{ns}type.object.name>\t"B"@en\t.\n<{ns}m.0z>\t<{ns}type.object.name>\t"Z"@en\t.\n'
    dump.write_bytes(gzip.compress(text.encode()))
    _, out = subset(tmp_path, [dump], ["m.0a"], hops=1)
    kept = out.read_text()
    assert kept.count("place_of_birth") == 1 and '"B"@en' in kept
    assert "type.object.type" in kept and "m.0z" not in kept


def test_seeds_that_are_freebase_ids_are_found_in_wikidata_by_p646(tmp_path: Path) -> None:
    dump = json_dump(tmp_path / "dump.json", entity("Q1", claim("P646", "/m/0abc"), claim("P1", "Q2")), entity("Q2"))
    result, out = subset(tmp_path, [dump], ["m.0abc", "m.0xyz"], hops=1)
    assert set(by_id(out)) == {"Q1", "Q2"}
    assert (result.counts["seeds_bridged"], result.not_found) == (1, ["m.0xyz"])


def test_the_full_rdf_dump_is_refused_with_the_way_out(tmp_path: Path) -> None:
    dump = tmp_path / "all.nt"
    dump.write_text(f"<{WD}Q1> <http://www.wikidata.org/prop/P1> <{WD}statement/Q1-x> .\n")
    with pytest.raises(KgInputError, match="truthy N-Triples or the JSON dump"):
        subset(tmp_path, [dump], ["Q1"])


def test_a_neighbourhood_that_does_not_fit_in_memory_is_an_error_that_names_the_options(tmp_path: Path) -> None:
    dump = tmp_path / "dump.nt"
    dump.write_text("".join(wikidata_line(("Q1", "P1", f"Q{number}")) for number in range(2, 400)))
    with pytest.raises(KgqaError, match="lower --hops or --max-degree"):
        subset(tmp_path, [dump], ["Q1"], memory_limit="10KB")


def test_json_and_other_formats_are_not_mixed(people: Path, tmp_path: Path) -> None:
    (tmp_path / "more.nt").write_text(wikidata_line(("Q1", "P1", "Q2")))
    with pytest.raises(KgInputError, match="make no one file"):
        subset(tmp_path, [people, tmp_path / "more.nt"], ["Q1"])


def test_tables_become_triples_with_the_iris_of_wikidata(tmp_path: Path) -> None:
    (tmp_path / "triples.tsv").write_text("Q1\tP1\tQ2\nQ2\tP2\tQ3\nQ3\tP1\tQ4\nQ8\tP1\tQ9\n")
    (tmp_path / "labels.en.tsv").write_text("Q1\tone\nQ9\tnine\nP1\tfirst\n")
    _, out = subset(tmp_path, [tmp_path / "triples.tsv", tmp_path / "labels.en.tsv"], ["Q1"], hops=2)
    assert statements_in(out) == {("Q1", "P1", "Q2"), ("Q2", "P2", "Q3")}
    assert labelled_in(out) == {"Q1", "P1"}
