"""Who may be drawn and who is drawn: counted by hand on a small graph."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import polars as pl
import pytest

from kgqa_core.config import PopularityOptions, SamplingOptions
from kgqa_core.errors import InputError
from kgqa_core.kg.store import KgStore
from kgqa_core.papers.ltgen.eligible import dropped_relations, find_eligible, pairs_of, triples_of
from kgqa_core.papers.ltgen.sample import draw
from kgqa_core.store.artifacts import content_digest
from kgqa_core.workspace import Workspace


def keys(store: KgStore, options: SamplingOptions, seed: int = 7) -> dict[str, int]:
    return {each.key: each.triples for each in find_eligible(store, options, seed).candidates}


def test_triples_count_both_ways_without_uninformative_relations_and_nameless_ends(ltgen_kg: Path) -> None:
    with KgStore.open(ltgen_kg) as store:
        found = keys(store, SamplingOptions())
    # of P19 P27 P106 P106 P569 P800 P50 with each person, and P26: Q1 is the spouse of Q2 to Q8, where these are drawn
    assert found["Q8"] == 7 + 3 and found["Q1"] == 7 + 7
    assert found["Q110"] == 8, "the country of eight people"
    assert "Q100" not in found and "Q130" not in found and "Q901" not in found


def test_bounds_of_the_number_of_triples_hold(ltgen_kg: Path) -> None:
    with KgStore.open(ltgen_kg) as store:
        everyone = keys(store, SamplingOptions(min_triples=1))
        for low, high in ((5, 100), (8, 10), (9, 9), (14, 14)):
            wanted = {key: number for key, number in everyone.items() if low <= number <= high}
            options = SamplingOptions(min_triples=low, max_triples=high)
            if wanted:
                assert keys(store, options) == wanted
            else:
                with pytest.raises(InputError, match="no entity of"):
                    keys(store, options)


def test_relations_are_dropped_by_rule_by_key_and_by_label(ltgen_kg: Path) -> None:
    with KgStore.open(ltgen_kg) as store:
        named = store.relation_keys()

        def dropped(**given: object) -> set[str]:
            return {named[number] for number in dropped_relations(store, SamplingOptions.model_validate(given))}

        assert dropped() == {"P735", "P214"}
        assert dropped(drop_relations=("P27", "Place of Birth")) == {"P735", "P214", "P27", "P19"}
        assert dropped(informative_only=False, drop_relations=("occupation",)) == {"P106"}


def test_pairs_have_all_objects_and_those_with_too_many_are_left_out(ltgen_kg: Path) -> None:
    with KgStore.open(ltgen_kg) as store:
        find_eligible(store, SamplingOptions(), 7)
        ids = {key: number for number, key in store.entity_keys(range(60)).items()}
        relations = store.relation_keys()

        def pairs(most: int) -> set[tuple[bool, str, str, int]]:
            found = pairs_of(store, [ids["Q1"]], most)[ids["Q1"]]
            return {
                (forward, *(store.entity_keys([head])[head], relations[relation]), len(triples))
                for forward, triples in found
                for head, relation, _ in [store.triples(triples[:1])[triples[0]]]
            }

        all_pairs = pairs(10)
        assert (True, "Q1", "P106", 2) in all_pairs and (False, "Q201", "P50", 1) in all_pairs
        assert (False, "Q3", "P26", 2) in all_pairs and (False, "Q8", "P26", 3) in all_pairs
        assert {pair for pair in all_pairs if pair[3] == 1} == pairs(1)
        mine = triples_of(store, [ids["Q1"]])[ids["Q1"]]
        assert mine == sorted(mine) and len(mine) == 14


def test_the_draw_follows_the_seed_and_the_keys_alone(ltgen_kg: Path) -> None:
    with KgStore.open(ltgen_kg) as store:
        one, two, other = (list(keys(store, SamplingOptions(), seed)) for seed in (7, 7, 8))
        assert one == two != other and sorted(one) == sorted(other)
        few = list(keys(store, SamplingOptions(min_triples=9)))
        assert few == [key for key in one if key in few], "who else may be drawn changes no order"


def test_the_order_of_the_draw_is_that_of_a_hash_of_seed_and_key(ltgen_kg: Path) -> None:
    with KgStore.open(ltgen_kg) as store:
        for seed in (7, 8):
            found = list(keys(store, SamplingOptions(), seed))
            assert found == sorted(found, key=lambda key: hashlib.sha256(f"ltgen/{seed}/{key}".encode()).hexdigest())


def test_levels_are_filled_in_the_order_of_the_draw(ltgen_kg: Path, tmp_path: Path) -> None:
    for size, name in ((2, "small"), (5, "large")):
        (tmp_path / name).mkdir()
        options = SamplingOptions(per_level=size, levels="absolute", thresholds=(1, 9, 14, 18, 100))
        counts = draw(Workspace(tmp_path / name), kg=ltgen_kg, options=options, popularity=PopularityOptions(), seed=7)
        assert counts["source"] == "degree" and counts["level_I"] == 0
    small, large = (pl.read_parquet(tmp_path / name / "entities.parquet") for name in ("small", "large"))
    for level in ("II", "III", "IV"):
        first = large.filter(pl.col("level") == level)["key"].to_list()[:2]
        assert small.filter(pl.col("level") == level)["key"].to_list() == first and len(first) == 2
    meta = json.loads((tmp_path / "large/meta.json").read_text())
    assert meta["source"] == "degree" and "no page views" in meta["about"]
    assert meta["levels"]["IV"] == {"bounds": "1 ≤ x < 9", "found": 3, "sampled": 3}


def test_the_same_draw_has_the_same_digest(ltgen_kg: Path, tmp_path: Path) -> None:
    digests = set()
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        options = SamplingOptions(levels="absolute", thresholds=(1, 9, 14, 15, 100))
        draw(Workspace(tmp_path / name), kg=ltgen_kg, options=options, popularity=PopularityOptions(), seed=7)
        digests.add(content_digest(tmp_path / name))
    assert len(digests) == 1


def test_levels_that_nobody_is_in_are_said(ltgen_kg: Path, tmp_path: Path) -> None:
    options = SamplingOptions(levels="absolute")
    with pytest.raises(InputError, match="no entity is in a level: the popularity is 8.0 to 17.0 triples"):
        draw(
            Workspace(tmp_path),
            kg=ltgen_kg,
            options=options.model_copy(update={"thresholds": (100, 200, 300, 400, 500)}),
            popularity=PopularityOptions(),
            seed=7,
        )
