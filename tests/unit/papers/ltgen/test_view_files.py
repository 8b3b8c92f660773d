"""Page views from files: published months in any packing, tables, and what is wrong with them."""

from __future__ import annotations

import bz2
import gzip
import json
from pathlib import Path

import pytest

from kgqa_core.config import PopularityOptions, SamplingOptions
from kgqa_core.errors import InputError, KgInputError
from kgqa_core.kg.store import KgStore
from kgqa_core.monitor import QUIET, NoteRecorder
from kgqa_core.papers.ltgen.eligible import find_eligible
from kgqa_core.papers.ltgen.popularity import (
    choose_source,
    dump_of,
    measure,
    months_of,
    read_dumps,
    read_sitelinks,
    read_views,
    sources_of,
)
from kgqa_core.workspace import Workspace

JANUARY = """\
de.wikipedia Oslo 1 desktop 99 A99
en.wikipedia Ada_Byron 11 desktop 30 A10B20
en.wikipedia Ada_Byron 11 mobile-web 70 A70
en.wikipedia Oslo 12 desktop 5 A5
en.wikipedia Not_wanted 13 desktop 8 A8
en.wikipedia - null desktop 3 A3
"""
FEBRUARY = "en.wikipedia Ada_Byron 11 desktop 20 A20\nen.wikipedia Bela_Kun null mobile-app 2 A2\nthis is no line\n"


@pytest.fixture
def dumps(tmp_path: Path) -> tuple[str, str]:
    """Two months, one packed with bzip2 and one with gzip."""
    one, two = tmp_path / "pageviews-202101-user.bz2", tmp_path / "pageviews-202102-user.gz"
    one.write_bytes(bz2.compress(JANUARY.encode()))
    two.write_bytes(gzip.compress(FEBRUARY.encode()))
    return str(one), str(two)


def test_months_are_added_over_devices_and_averaged(dumps: tuple[str, str]) -> None:
    sources = sources_of(dumps)
    assert months_of(sources) == 2
    found = read_dumps(sources, "en.wikipedia", ["Ada_Byron", "Oslo", "Bela_Kun", "Nobody"])
    assert found == {"Ada_Byron": 60.0, "Oslo": 2.5, "Bela_Kun": 1.0}
    assert read_dumps(sources, "de.wikipedia.org", ["Oslo"]) == {"Oslo": 49.5}


@pytest.mark.parametrize(
    ("names", "months"),
    [(["pageviews-202101-user.bz2", "pageviews-202101-automated.bz2"], 1), (["a.txt", "b.txt"], 2),
     (["pageviews-20210115-user.bz2", "pageviews-20210116-user.bz2"], 1), (["v-2021-01.gz", "v-2021-02.gz"], 2)],
)  # fmt: skip
def test_months_are_told_apart_by_the_names_of_the_files(tmp_path: Path, names: list[str], months: int) -> None:
    for name in names:
        (tmp_path / name).write_text("x")
    assert months_of(sources_of([str(tmp_path / name) for name in names])) == months


def test_a_table_gives_views_by_key_and_says_what_it_cannot_read(tmp_path: Path) -> None:
    path = tmp_path / "views.tsv"
    path.write_text("key\tviews\n<Q1>\t1,200\nQ2\t0.5\nQ3\tmany\nQ4\nQ5\t-3\n\n")
    assert read_views(sources_of([str(path)]), 1) == {"Q1": 1200.0, "Q2": 0.5}
    assert read_views(sources_of([str(path)]), 12)["Q1"] == 100.0


@pytest.mark.parametrize("text", ["", "no tabs at all\n", "a\tb\nc\td\n"])
def test_a_file_without_views_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "views.tsv"
    path.write_text(text)
    with pytest.raises(KgInputError, match="key<TAB>views"):
        read_views(sources_of([str(path)]), 1)


def test_a_dump_of_another_format_or_missing_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "views.txt"
    path.write_text("hello world\n")
    with pytest.raises(KgInputError, match="none of 1 lines is `en.wikipedia Title"):
        read_dumps(sources_of([str(path)]), "en.wikipedia", ["A"])
    with pytest.raises(KgInputError, match="there is no file of page views"):
        sources_of([str(tmp_path / "gone")])
    with pytest.raises(KgInputError, match="names no file"):
        sources_of([])


def test_auto_takes_files_then_the_graphs_views_then_the_degree(dumps: tuple[str, str], tmp_path: Path) -> None:
    table = tmp_path / "t.tsv"
    table.write_text("Q1\t5\n")
    assert choose_source(PopularityOptions(files=dumps), False) == "dump"
    assert choose_source(PopularityOptions(files=(str(table),)), True) == "table"
    assert choose_source(PopularityOptions(), True) == "graph"
    assert choose_source(PopularityOptions(), False) == "degree"
    assert choose_source(PopularityOptions(source="degree", files=dumps), True) == "degree"
    with pytest.raises(InputError, match="this graph has no page views"):
        choose_source(PopularityOptions(source="graph"), False)


def test_titles_are_labels_or_come_from_a_table(ltgen_kg: Path, dumps: tuple[str, str], tmp_path: Path) -> None:
    titles = tmp_path / "titles.tsv"
    titles.write_text("Q2\tAda Byron\nQ3\tOslo\n")
    with KgStore.open(ltgen_kg) as store:
        candidates = find_eligible(store, SamplingOptions(), 7).candidates
        names = {each.entity: each.key for each in candidates}
        by_label = measure(Workspace(Path()), store, candidates, PopularityOptions(files=dumps))
        by_table = measure(Workspace(Path()), store, candidates, PopularityOptions(files=dumps, titles=str(titles)))
        with pytest.raises(InputError, match="none of 11 entities has a popularity by the source 'dump'"):
            measure(Workspace(Path()), store, candidates, PopularityOptions(files=dumps, project="fr.wikipedia"))
    assert {names[entity]: value for entity, value in by_label.values.items()} == {"Q1": 60.0, "Q2": 1.0}
    assert by_label.counts == {"looked_at": 11, "with_value": 2, "unknown": 9, "shared_titles": 0}
    assert {names[entity]: value for entity, value in by_table.values.items()} == {"Q2": 60.0, "Q3": 2.5}
    assert "2 months" in by_label.about


def entity(key: str, **links: str) -> str:
    """A line of Wikidata's dump."""
    sitelinks = {site: {"site": site, "title": title, "badges": ["Q17437798"]} for site, title in links.items()}
    label = {"en": {"language": "en", "value": 'a "name"'}}
    claims = {"P1": [{"id": "Q9$1", "mainsnak": {"datavalue": {"value": {"id": "Q9"}}}}]}
    return json.dumps({"type": "item", "id": key, "labels": label, "claims": claims, "sitelinks": sitelinks})


def test_sitelinks_give_homonyms_the_views_of_their_own_articles(
    ltgen_kg: Path, dumps: tuple[str, str], tmp_path: Path
) -> None:
    """Q1's label is the title of Q3's article."""
    dump = tmp_path / "wikidata.json.gz"
    lines = [entity("Q1", dewiki="Oslo"), entity("Q2", enwikiquote="Oslo", enwiki="Béla_Kun")]
    lines += [entity("Q3", enwiki="Ada Byron"), entity("Q99", enwiki="Oslo")]
    dump.write_bytes(gzip.compress(("[\n" + ",\n".join(lines) + "\n]\n").encode()))
    assert dump_of([str(tmp_path / "gone"), str(dumps[0]), str(dump)]) == str(dump)
    [source] = sources_of([str(dump)])
    assert read_sitelinks(source, "en.wikipedia", ["Q1", "Q2", "Q3"]) == {"Q2": "Béla_Kun", "Q3": "Ada Byron"}
    assert read_sitelinks(source, "en.wikiquote.org", ["Q1", "Q2"]) == {"Q2": "Oslo"}
    recorder = NoteRecorder(QUIET)
    with KgStore.open(ltgen_kg) as store:
        candidates = find_eligible(store, SamplingOptions(), 7).candidates
        keys = {each.entity: each.key for each in candidates}
        linked = PopularityOptions(files=dumps, titles=str(dump))
        found = measure(Workspace(Path()), store, candidates, linked)
        assert {keys[number]: value for number, value in found.values.items()} == {"Q3": 60.0}
        nothing = linked.model_copy(update={"project": "fr.wikipedia"})
        dump.write_bytes(gzip.compress((entity("Q1") + "\n").encode()))
        with pytest.raises(InputError, match="none of 11"):
            measure(Workspace(Path(), monitor=recorder), store, candidates, nothing)
    assert recorder.notes[:1] == ["wikidata.json.gz names no article of fr.wikipedia; entities' labels serve as titles"]


def test_sitelinks_of_a_real_dump_are_those_that_json_has(shared_data: Path) -> None:
    path = shared_data / "wikidata_samples" / "wikidata-filter" / "entities"
    texts = [line.strip(" ,\n") for line in path.read_text(encoding="utf-8").splitlines()]
    entities = [json.loads(text) for text in texts if text not in ("", "[", "]")]
    for project, site in (("en.wikipedia", "enwiki"), ("zh-classical.wikipedia", "zh_classicalwiki")):
        titles = {each["id"]: each["sitelinks"][site]["title"] for each in entities if site in each["sitelinks"]}
        assert len(titles) > 10
        assert read_sitelinks(sources_of([str(path)])[0], project, [each["id"] for each in entities]) == titles
