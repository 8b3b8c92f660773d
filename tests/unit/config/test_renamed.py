"""Options under old names: refused in users' files, read in records, unchanged inside artifacts."""

from __future__ import annotations

import pytest

from kgqa_core.config import (
    AnswerabilityOptions,
    Profile,
    RewriterOptions,
    known_keys,
    make_profile,
    new_name,
    parse_settings,
    recorded_options,
    recorded_profile,
    upgrade,
)
from kgqa_core.config.renamed import GONE, REMOVED, RENAMED, old_names
from kgqa_core.errors import ConfigError


def test_every_new_name_is_an_option_and_no_old_one_is() -> None:
    known = known_keys()
    sections = {key.rpartition(".")[0] for key in known}
    assert set(RENAMED.values()) <= {*known, *sections, *REMOVED, *GONE}
    assert not {*RENAMED, *REMOVED, *GONE} & {*known, *sections}
    assert [key for key in known if new_name(key) != key] == []
    assert {new_name(key) for key in old_names(known)} <= set(known)


def test_old_names_are_refused_with_the_new_ones_and_all_other_faults() -> None:
    old = {"retriever": {"hops": 9}, "parsing": {"missing": 0.1, "decode": {"failed": "keep"}}, "rewriter": {"rank": 4}}
    old["retrieval"] = {"kaping": {"hops": 1}}
    with pytest.raises(ConfigError) as caught:
        make_profile({**old, "sed": 1})
    message = str(caught.value)
    assert "7 fault(s)" in message
    for one in (
        "unknown key 'retriever.hops'; it is called 'rigel.hops' now",
        "unknown key 'parsing.missing'; it is called 'parsing.rng.missing_relation_rate' now",
        "unknown key 'parsing.decode.failed'; it is called 'parsing.decode.on_empty_result' now",
        "unknown key 'retrieval.kaping.hops'; it is called 'kaping.hops' now",
        "unknown key 'rewriter.rank'; it is called 'rewriter.lora_rank' now",
        "rigel.hops: Input should be less than or equal to 4, but it is 9",
        "unknown key 'sed'; did you mean 'seed'?",
    ):
        assert one in message
    with pytest.raises(ConfigError, match=r"unknown key 'retriever\.hops'; it is called 'rigel\.hops' now"):
        parse_settings(["retriever.hops=3"])
    with pytest.raises(ConfigError, match=r"unknown key 'retriver\.hops'; did you mean 'rigel\.hops'"):
        parse_settings(["retriver.hops=3"])


def test_options_of_listed_question_sets_are_read_and_refused_under_their_old_names() -> None:
    old = [
        {"name": "generated", "generated": {"most_ties": 2}},
        {"name": "atlas", "generated": {"least_per_relation": 1}},
    ]
    assert [each["generated"] for each in upgrade({"questions": old})["questions"]] == [
        {"max_ties": 2},
        {"min_per_relation": 1},
    ]
    with pytest.raises(
        ConfigError, match=r"'questions\.generated\.most_ties'; it is called 'questions\.generated\.max_ties'"
    ):
        make_profile({"questions": old})


def test_a_record_of_an_earlier_version_is_read() -> None:
    record = {
        "run_id": "r",
        "profile": {
            "retriever": {"hops": 3, "mix": {"others": 0.5}},
            "retrieval": {"k": 5, "kaping": {"hops": 1}},
            "parsing": {"hard": 0.25, "hops": 1, "generator": {"use": True}, "decode": {"missing": 0.1, "beam": 7}},
            "llm": {"prices": {"openai:gpt-4.1": {"prompt": 2.0}}},
        },
    }
    profile = recorded_profile(record)
    assert (profile.rigel.hops, profile.rigel.mix) == (3, {"others": 0.5})
    assert (profile.retrieval.k, profile.kaping.hops) == (5, 1)
    assert (profile.parsing.rng.hard_negatives, profile.parsing.rng.hops) == (0.25, 1)
    assert profile.parsing.rng.generator.enabled
    assert (profile.parsing.decode.missing_relation_rate, profile.parsing.decode.beam) == (0.1, 7)
    assert profile.llm.prices["openai:gpt-4.1"].prompt == 2.0


def test_a_profile_of_today_is_left_as_it_is() -> None:
    plain = Profile().model_dump(mode="json")
    assert upgrade(plain) == plain and recorded_profile({"profile": plain}) == Profile()


def test_options_inside_artifacts_keep_their_first_names() -> None:
    rewriter = recorded_options("rewriter", RewriterOptions(lora_rank=4, warmup_ratio=0.1))
    assert (rewriter["rank"], rewriter["warmup"]) == (4, 0.1) and "lora_rank" not in rewriter
    assert {"p_u", "parts", "full", "largest"} <= set(recorded_options("answerability", AnswerabilityOptions()))


def test_an_option_that_is_gone_is_refused_in_a_profile_and_read_in_a_record_with_the_value_that_counts() -> None:
    gone = r"unknown key '{}'; the option is gone, {} always counts"
    with pytest.raises(ConfigError, match=gone.format("retrieval.min_hop_attention", "0.05")):
        make_profile({"retrieval": {"min_hop_attention": 0.05}})
    with pytest.raises(ConfigError, match=gone.format("symbolic.facts", "True")):
        parse_settings(["symbolic.facts=false"])
    record = {"profile": {"retrieval": {"k": 5, "min_hop_attention": 0.05}, "symbolic": {"facts": True}}}
    assert recorded_profile(record).retrieval.k == 5
    with pytest.raises(ConfigError, match=gone.format("retrieval.min_hop_attention", "0.05")):
        recorded_profile({"profile": {"retrieval": {"min_hop_attention": 0.5}}})
    assert recorded_options("answerability", AnswerabilityOptions())["schema_share"] == 0.9


def test_options_of_answerers_that_are_gone_are_refused_in_a_profile_and_read_in_a_record() -> None:
    gone = "the answerers that had it are gone, write answering.answerer: auto"
    for setting in ("operator.epochs=3", "operation_classifier.encoder=minilm", "symbolic.most_forms=3"):
        with pytest.raises(ConfigError, match=f"unknown key '{setting.partition('=')[0]}'; {gone}"):
            parse_settings([setting])
    options = {"operator": {"epochs": 3}, "symbolic": {"margin": 2.0, "max_forms": 7, "max_answers": 9}}
    with pytest.raises(ConfigError, match=f"unknown key 'symbolic.margin'; {gone}"):
        make_profile(options)
    read = recorded_profile({"profile": options})
    assert read == make_profile({"symbolic": {"max_answers": 9}})
    with pytest.raises(ConfigError, match=r"profile of run r (.|\n)*'hybrid:builtin' is gone; write auto"):
        recorded_profile({"run_id": "r", "profile": {"answering": {"answerer": "hybrid:builtin"}}})
