"""Names of retriever variants, knowledge, answerers and experiments are read and written in one place."""

from __future__ import annotations

import pytest

from kgqa_core.config import Answerer, Experiment, Knowledge, RetrieverVariant
from kgqa_core.errors import ConfigError


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rigel/triples/builtin", Experiment("rigel", "gold", "triples", "builtin")),
        ("rigel@linked/triples/openai:m@e", Experiment("rigel", "linked", "triples", "openai:m@e")),
        ("rigel/triples/hf:google/flan-t5", Experiment("rigel", "gold", "triples", "hf:google/flan-t5")),
        ("rank_amr@linked/-/-", Experiment("rank_amr", "linked")),
        ("none/none/hf:x/y", Experiment("none", "gold", "none", "hf:x/y")),
    ],
)
def test_an_experiment_is_written_as_it_is_read(name: str, value: Experiment) -> None:
    assert Experiment.parse(name) == value and str(value) == name
    assert value.alone == name.endswith("/-/-") and value.linked == ("@linked/" in name)


def test_an_experiment_without_format_or_answerer_is_a_retriever_alone() -> None:
    assert Experiment.parse("rigel") == Experiment.parse("rigel/-/-")


@pytest.mark.parametrize(
    ("name", "written", "short"),
    [
        ("rigel", "rigel/triples", "rigel"),
        ("rigel@linked", "rigel@linked/triples", "rigel@linked"),
        ("hop_path/template", "hop_path/template", "hop_path/template"),
        ("none", "none/none", "none"),
        ("passages", "passages/passages", "passages/passages"),
    ],
)
def test_knowledge_is_written_with_its_format(name: str, written: str, short: str) -> None:
    knowledge = Knowledge.parse(name)
    assert (str(knowledge), knowledge.short) == (written, short)
    assert Knowledge.parse(written) == knowledge
    assert str(knowledge.variant) == written.partition("/")[0] and knowledge.graphless == (name in ("none", "passages"))


@pytest.mark.parametrize("name", ["rigel/prose", "rigel/none", "none/triples", "passages/both", "rigel/passages"])
def test_knowledge_of_an_unknown_format_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="has no known format; write none, passages, or retriever/format"):
        Knowledge.parse(name)


@pytest.mark.parametrize(
    ("spec", "value", "written"),
    [
        ("auto", Answerer("auto"), "auto"),
        ("auto:openai:m@e", Answerer("auto", "openai:m@e"), "auto:openai:m@e"),
        ("gcr:hf:x", Answerer("gcr", "hf:x"), "gcr:hf:x"),
        ("openai:gpt", Answerer("model", "openai:gpt"), "openai:gpt"),
    ],
)
def test_an_answerer_is_written_as_it_is_read(spec: str, value: Answerer, written: str) -> None:
    assert Answerer.parse(spec) == value and str(value) == written
    assert (value.computes, value.explores) == (value.kind == "auto", value.kind == "gcr")


def test_a_variant_is_a_retriever_with_its_topics() -> None:
    assert RetrieverVariant.parse("kaping@linked") == RetrieverVariant("kaping", "linked")
    assert str(RetrieverVariant("kaping")) == "kaping"
