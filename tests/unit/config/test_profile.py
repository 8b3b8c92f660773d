"""Profiles are checked whole: every fault at once, each with the nearest name."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from flows.cli._session import PROFILES, choose_profile, profile_names
from kgqa_core.config import (
    KgOptions,
    QuestionsOptions,
    RelationRankingOptions,
    RetrievalOptions,
    known_keys,
    make_profile,
    parse_settings,
    read_profile,
)
from kgqa_core.errors import ConfigError


@pytest.mark.parametrize("name", profile_names())
def test_shipped_profile_is_valid_and_says_what_it_is_for(name: str) -> None:
    profile = choose_profile(name)
    assert profile.name == name
    assert profile.description.endswith(".")
    if "rigel" in profile.retrieval.retrievers:
        assert "loss" in (PROFILES / f"{name}.yaml").read_text(), "a profile says which loss and why"


@pytest.mark.parametrize("name", [name for name in profile_names() if name.endswith("-rra-published")])
def test_the_published_profiles_have_every_switch_of_the_paper(name: str) -> None:
    profile = choose_profile(name)
    assert profile.answering.template == "rra2023", "T2 for every format"
    assert (profile.rewriter.on_unfaithful, profile.rewriter.wording) == ("keep", "rra2023")
    assert (profile.hop_path.sampling, profile.hop_path.named_first) == ("sequential", False)
    assert (profile.hop_path.reasoning_paths, profile.hop_path.beam) == (5, 3 if name[:5] in ("zjqa-", "metaq") else 5)
    assert profile.hop_path.gold_hops == name.startswith("metaqa")
    paths = profile.hop_path
    assert (paths.mask_topic, paths.shared_encoder, paths.pooling) == (False, False, "pooler")
    assert (paths.encoder_layers, paths.train_embeddings) == (0, True)
    assert (profile.rewriter.lora_rank, profile.rewriter.lora_alpha, profile.rewriter.lora_dropout) == (64, 128, 0.05)
    assert (profile.rigel.loss, profile.questions.parses) == ("bce", "first")
    assert {"none/none", "hop_path/triples", "hop_path/rewritten"} <= set(profile.knowledge)
    profile.check_knowledge()


def test_four_sets_have_a_published_profile_beside_ours() -> None:
    published = {name.removesuffix("-rra-published") for name in profile_names() if name.endswith("-rra-published")}
    assert published == {"zjqa", "metaqa", "atlas", "webqsp"} <= set(profile_names())
    ours = choose_profile("zjqa")
    assert (ours.hop_path.sampling, ours.hop_path.named_first) == ("proportional", True)
    assert (ours.rewriter.on_unfaithful, ours.answering.template) == ("replace", "sen2023")


def test_settings_win_over_the_profile() -> None:
    profile = choose_profile("atlas", settings=["rigel.hops=3", "seed=11", "questions.hops=[1, 2]"])
    assert (profile.rigel.hops, profile.seed, profile.questions.hops) == (3, 11, (1, 2))


def test_all_faults_are_reported_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        make_profile({"rigel": {"hops": 99, "los": "bce"}, "sed": 7})
    message = str(caught.value)
    assert "3 fault(s)" in message
    assert "rigel.hops" in message and "99" in message
    assert "did you mean 'rigel.loss'" in message and "did you mean 'seed'" in message


def test_setting_without_value_or_with_an_unknown_key_is_refused() -> None:
    with pytest.raises(ConfigError, match="key=value"):
        parse_settings(["rigel.hops"])
    with pytest.raises(ConfigError, match=r"did you mean 'rigel\.hops'"):
        parse_settings(["rigel.hop=3"])


def test_own_graph_and_questions_need_no_profile(tmp_path: Path) -> None:
    profile = choose_profile(None, [tmp_path / "g.tsv"], tmp_path / "q.jsonl", "hf:some/model")
    assert profile.kg.files == (str(tmp_path / "g.tsv"),)
    assert profile.questions.path == str(tmp_path / "q.jsonl")
    assert profile.answering.answerer == "hf:some/model"
    with pytest.raises(ConfigError, match="--questions"):
        choose_profile(None, [], tmp_path / "q.jsonl")


def test_a_graph_alone_gets_generated_questions_and_few_real_ones_are_mixed_in(tmp_path: Path) -> None:
    alone = choose_profile(None, [tmp_path / "g.tsv"])
    assert (alone.name, alone.questions.source, alone.questions.path) == ("g", "generated", None)
    few = choose_profile(
        None, [tmp_path / "g.tsv"], tmp_path / "few.jsonl", None, ["questions.source=generated"]
    ).questions
    assert (few.source, few.path) == ("generated", str(tmp_path / "few.jsonl"))
    size = parse_settings(["questions.generated.size=40"])
    assert make_profile(alone.model_dump(mode="json"), size).questions.generated.size == 40


def test_every_key_is_documented() -> None:
    undocumented = []
    for key in known_keys():
        *sections, leaf = key.split(".")
        owner: object = make_profile({})
        for section in sections:
            owner = getattr(owner, section)
        if not type(owner).model_fields[leaf].description:
            undocumented.append(key)
    assert not undocumented


def test_decisive_fields_leave_out_where_and_how_fast() -> None:
    assert set(KgOptions().decisive()).isdisjoint({"name", "files", "threads", "memory_limit"})
    trained = RelationRankingOptions().decisive()
    assert set(trained).isdisjoint({"device", "checkpoint_seconds", "amr_parser"}) and "encoder" in trained


@pytest.mark.parametrize(
    ("knowledge", "adapt", "expected"),
    [
        (["rigel", "hop_path/template"], True, (False, False)),
        (["none", "hop_path/rewritten"], True, (True, True)),
        (["rigel/rewritten"], False, (True, False)),
    ],
)
def test_a_profile_knows_whether_a_rewriter_writes_and_is_trained(
    knowledge: list[str], adapt: bool, expected: tuple[bool, bool]
) -> None:
    profile = make_profile({"answering": {"knowledge": knowledge}, "rewriter": {"adapt": adapt}})
    assert (profile.rewrites, profile.trains_rewriter) == expected


def test_linked_variants_follow_from_one_setting() -> None:
    knowledge = ["none", "random", "rigel", "hop_path/template"]
    profiles = {
        topics: make_profile({"retrieval": {"topics": topics}, "answering": {"knowledge": knowledge}})
        for topics in ("gold", "linked", "both")
    }
    assert profiles["gold"].retrieval.collected == ("rigel", "hop_path", "random", "oracle")
    assert profiles["linked"].retrieval.collected == ("rigel@linked", "hop_path@linked", "random", "oracle")
    assert profiles["both"].retrieval.collected == (
        "rigel", "rigel@linked", "hop_path", "hop_path@linked", "random", "oracle",
    )  # fmt: skip
    assert profiles["gold"].knowledge == ("none/none", "random/triples", "rigel/triples", "hop_path/template")
    assert profiles["linked"].knowledge == (
        "none/none", "random/triples", "rigel@linked/triples", "hop_path@linked/template",
    )  # fmt: skip
    assert profiles["both"].knowledge == (
        "none/none", "random/triples", "rigel/triples", "rigel@linked/triples", "hop_path/template",
        "hop_path@linked/template",
    )  # fmt: skip
    assert [profiles[topics].links_topics for topics in ("gold", "linked", "both")] == [False, True, True]


def test_training_questions_are_linked_where_something_reads_their_links() -> None:
    linked: dict[str, Any] = {"retrieval": {"topics": "linked"}}
    assert not make_profile(linked).links_training
    for more in (
        {"retrieval": {"topics": "linked", "training": True}},
        {"symbolic": {"parser": "rng"}},
        {"rigel": {"soft_start": True}, "retrieval": {"topics": "linked", "retrievers": ["rigel"]}},
    ):
        assert make_profile(linked | more).links_training


def test_only_yardsticks_link_nothing() -> None:
    profile = make_profile({"retrieval": {"topics": "both", "retrievers": ["random", "oracle"]}})
    assert profile.retrieval.collected == ("random", "oracle") and not profile.links_topics


def test_a_list_that_names_linked_variants_is_read_as_it_stands() -> None:
    knowledge = ["rigel", "rigel/template", "rigel@linked", "hop_path"]
    profile = make_profile({"retrieval": {"topics": "both"}, "answering": {"knowledge": knowledge}})
    assert profile.knowledge == (
        "rigel/triples", "rigel/template", "rigel@linked/triples", "hop_path/triples",
    )  # fmt: skip
    profile = make_profile({"retrieval": {"topics": "linked"}, "answering": {"knowledge": knowledge}})
    assert profile.knowledge == ("rigel@linked/triples", "rigel@linked/template", "hop_path@linked/triples")


@pytest.mark.parametrize(
    ("layer", "fault"),
    [
        ({"answering": {"knowledge": ["rigel@linked"]}}, "needs linked topics; set retrieval.topics to linked or both"),
        (
            {"retrieval": {"topics": "both"}, "answering": {"knowledge": ["oracle@linked/template"]}},
            "oracle always starts from gold topics; write 'oracle'",
        ),
        (
            {"retrieval": {"topics": "both"}, "answering": {"knowledge": ["rigel@gold"]}},
            "the one variant is @linked; write 'rigel'",
        ),
        (
            {"retrieval": {"retrievers": ["rigel@linked"]}},
            "retrieval.retrievers: 'rigel@linked' is no plain name; list 'rigel' and set retrieval.topics",
        ),
    ],
)
def test_a_variant_that_cannot_be_is_refused_when_the_profile_is_loaded(layer: dict[str, Any], fault: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make_profile(layer)
    assert fault in str(caught.value) and "Value error" not in str(caught.value)


def test_topics_are_no_part_of_the_key_of_facts() -> None:
    # The questions that are handed over decide, and gold facts made before stay valid.
    options = RetrievalOptions()
    assert options.decisive() == RetrievalOptions(topics="both").decisive()
    assert "topics" not in options.decisive()


def test_shares_of_a_benchmark_leave_something_for_test() -> None:
    with pytest.raises(ConfigError, match=r"ltgen.writing: train_share 0.8 and dev_share 0.5 leave no entity for test"):
        make_profile({"ltgen": {"writing": {"train_share": 0.8, "dev_share": 0.5}}})
    with pytest.raises(ConfigError, match="together they must be below 1"):
        make_profile({"ltgen": {"writing": {"train_share": 0.5, "dev_share": 0.5}}})
    assert make_profile({"ltgen": {"writing": {"train_share": 0.6, "dev_share": 0.3}}}).ltgen.writing.dev_share == 0.3


def laughs(first: str, form: str) -> str:
    """A YAML text of nine anchors, each with ten aliases of the one before."""
    lines = [f"a: &a {first}"]
    for before, name in pairwise("abcdefghi"):
        parts = ", ".join(f"k{number}: *{before}" if form == "{}" else f"*{before}" for number in range(10))
        lines.append(f"{name}: &{name} {form[0]}{parts}{form[1]}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        (" \n\n", "is empty: it holds only white space"),
        ("\0" * 300, "holds only zero bytes"),
        (laughs("[x, x]", "[]"), "expands to more than 100,000 values by its anchors"),
        (laughs("{k: v}", "{}") + "kg:\n  <<: *i\n", "expands to more than 100,000 values by its anchors"),
        ("a: &a [*a]\n", "expands to more than 100,000 values by its anchors"),
        ("a: " + "[" * 100_000, "is nested too deeply"),
        ("# x\n" * 1_500_000, "has more than 4,194,304 bytes"),
    ],
)
def test_a_profile_that_is_no_profile_is_named_as_what_it_is(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=rf"mine\.yaml {words}"):
        read_profile(path)


def test_anchors_of_a_usual_size_are_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("base: &base {a: 1, b: 2}\nkg:\n  <<: *base\n  a: 3\n")
    assert read_profile(path)["kg"] == {"a": 3, "b": 2}


def test_a_graph_alone_trains_nothing_and_is_measured_on_a_few_generated_questions() -> None:
    alone = choose_profile(None, [Path("g.tsv")])
    assert alone.retrieval.collected == ("topics@linked",) and alone.knowledge == ("topics@linked/triples",)
    assert (alone.answering.answerer, alone.answering.more, alone.learns, alone.adapts) == ("auto", (), False, False)
    assert list(alone.needed_splits) == ["test"] and alone.questions.generated.split_shares == (0, 0.5, 0.5)
    assert alone.questions.generated.size < QuestionsOptions().generated.size
    assert choose_profile(None, [Path("g.tsv")], answerer="auto") == alone
    assert (
        choose_profile(None, [Path("g.tsv")], settings=["questions.generated.size=40"]).questions.generated.size == 40
    )
    trained = choose_profile(None, [Path("g.tsv")], settings=["label_parser.adapt=always"])
    assert trained.adapts and trained.learns and trained.questions.generated == QuestionsOptions().generated
    assert (trained.retrieval, trained.answering) == (alone.retrieval, alone.answering)


@pytest.mark.parametrize(
    ("answerer", "settings"),
    [
        (None, ["answering.more=[builtin]"]),
        ("builtin", []),
        (None, ["retrieval.retrievers=[hop_path, random, oracle]"]),
    ],
)
def test_a_graph_alone_whose_retriever_is_asked_for_has_questions_to_train_it(
    answerer: str | None, settings: list[str]
) -> None:
    profile = choose_profile(None, [Path("g.tsv")], answerer=answerer, settings=settings)
    assert profile.retrieval.retrievers == ("hop_path", "random", "oracle")
    assert profile.learns and not profile.adapts and "train" in profile.needed_splits
    assert profile.questions.generated == QuestionsOptions().generated


def test_questions_of_ones_own_let_the_label_parser_learn() -> None:
    few = choose_profile(None, [Path("g.tsv")], Path("few.jsonl"), settings=["questions.source=generated"])
    assert few.questions.path == "few.jsonl" and few.retrieval.retrievers == ("hop_path", "random", "oracle")
    own = choose_profile(None, [Path("g.tsv")], Path("few.jsonl"))
    assert own.retrieval.topics == "gold" and own.retrieval != few.retrieval
    corrected = choose_profile(None, [Path("g.tsv")], settings=["questions.also_train=right.jsonl"])
    for profile in (few, own, corrected):
        assert profile.adapts and profile.questions.generated == QuestionsOptions().generated
        off = profile.label_parser.model_copy(update={"adapt": "never"})
        assert not profile.model_copy(update={"label_parser": off}).adapts
    assert not choose_profile(None, [Path("g.tsv")], Path("few.jsonl"), "builtin").adapts


def test_retrievers_that_no_answerer_reads_are_not_trained_unless_they_are_listed() -> None:
    def retrievers(*answerers: str, **more: Any) -> tuple[str, ...]:
        own = {"answering": {"answerers": list(answerers), **more.pop("answering", {})}, **more}
        return make_profile(own).retrieval.retrievers

    default = RetrievalOptions().retrievers
    assert retrievers("auto", "builtin") == retrievers("builtin") == default
    assert retrievers("auto") == ("hop_path", "random", "oracle")
    assert retrievers("auto", answering={"knowledge": ["none", "rigel/triples"]}) == ("rigel", "random", "oracle")
    assert retrievers("agent:openai:m") == ("random", "oracle", "topics")
    assert retrievers("auto", retrieval={"retrievers": default}) == default
    with pytest.raises(ConfigError, match="retrieval"):
        retrievers("auto", retrieval="rigel")


@pytest.mark.parametrize("sign", ["|", ">", "#", ",", ":", "&", "-", "\t", ";", "'"])
def test_single_sign_is_taken_as_it_stands(sign: str) -> None:
    settings = parse_settings([f"kg.delimiter={sign}"])
    assert settings["kg"]["delimiter"] == sign
    assert make_profile(settings).kg.delimiter == sign
    assert parse_settings(["kg.delimiter=~"])["kg"]["delimiter"] is None
