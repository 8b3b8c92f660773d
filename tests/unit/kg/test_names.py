"""In which language a thing is named."""

from __future__ import annotations

import pytest

from kgqa_core.config import KgOptions
from kgqa_core.kg.names import language_order
from kgqa_core.kg.store import KgStore
from tests.support.staged import LABEL, graph

NAMES = ["en", "en-gb", "en-ca", "de", "de-at", "mul", "fr", "zh-hans", "zh-hant-tw", ""]


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    """A graph with an entity for each set of languages; the name of each tells its language."""
    path = tmp_path_factory.mktemp("named") / "kg.duckdb"
    sets = {"all": NAMES, "variants": ["en-ca", "en-gb", "fr"], "other": ["fr", "de"], "mul": ["mul", "de-at", "fr"],
            "base": ["en", "fr", "mul"], "chinese": ["zh-hant-tw", "ab"]}  # fmt: skip
    statements = [(key, LABEL, (lang, f"@{lang}" if lang else "")) for key, langs in sets.items() for lang in langs]
    statements += [(key, "r", "unnamed") for key in sets]
    statements += [("r", LABEL, ("rel mul", "@mul")), ("r", LABEL, ("rel en-gb", "@en-gb"))]
    graph(path, KgOptions(), statements)
    with KgStore.open(path) as store:
        yield store


@pytest.mark.parametrize(
    ("languages", "expected"),
    [
        (("en", ""), {"all": "en", "variants": "en-ca", "other": "de", "mul": "mul", "base": "en", "chinese": "ab"}),
        (("en-GB",), {"all": "en-gb", "variants": "en-gb", "other": "de", "mul": "mul", "base": "en", "chinese": "ab"}),
        (("de-AT", "fr"), {"all": "de-at", "variants": "fr", "other": "de", "mul": "de-at", "base": "fr",
                           "chinese": "ab"}),
        (("", "de"), {"all": "", "variants": "en-ca", "other": "de", "mul": "mul", "base": "mul", "chinese": "ab"}),
        (("zh",), {"all": "mul", "variants": "en-ca", "other": "de", "mul": "mul", "base": "mul",
                   "chinese": "zh-hant-tw"}),
        (("zh-Hant",), {"all": "mul", "variants": "en-ca", "other": "de", "mul": "mul", "base": "mul",
                        "chinese": "zh-hant-tw"}),
    ],
)  # fmt: skip
def test_a_name_falls_back_over_languages_their_base_mul_and_variants(named, languages, expected):
    keys = named.entity_keys(range(20))
    found = {keys[i]: name for i, name in named.names(range(20), languages).items()}
    assert found == {**expected, "unnamed": "unnamed"}


def test_relations_fall_back_too(named):
    assert named.relation_names() == ["rel mul"]


def test_the_order_of_languages_names_each_once():
    order = language_order(("en-GB", "EN", "de", ""))
    assert order == ["en-gb", "en", "de", "", "mul", "en-gb-*", "en-*", "de-*"]
