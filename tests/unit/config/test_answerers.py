"""Several answerers in one profile, what each of them reads, and the options of the label parser."""

from __future__ import annotations

from typing import Any

import pytest

from kgqa_core.config import Profile, make_profile
from kgqa_core.config.label_parser import LabelParserOptions
from kgqa_core.errors import ConfigError

LISTED = ("none", "random", "rigel", "rigel/template", "hop_path")


def profile(answerer: str, *more: str, knowledge: tuple[str, ...] = LISTED, **sections: Any) -> Profile:
    answering = {"answerer": answerer, "more": list(more), "knowledge": list(knowledge)}
    return make_profile({"answering": answering, **sections})


def test_each_answerer_is_a_profile_of_its_own_the_first_one_first() -> None:
    given = profile("auto", "builtin", "openai:m", seed=3)
    each = given.each_answerer
    assert [one.answering.answerer for one in each] == ["auto", "builtin", "openai:m"]
    assert all(one.answering.more == () and one.seed == 3 for one in each)
    assert given.answering.more == ("builtin", "openai:m")


def test_answerer_that_is_named_twice_answers_once() -> None:
    assert [one.answering.answerer for one in profile("auto", "builtin", "auto", "builtin").each_answerer] == [
        "auto", "builtin",
    ]  # fmt: skip
    alone = profile("builtin")
    assert [one.answering for one in alone.each_answerer] == [alone.answering]


def test_auto_takes_the_retriever_that_predicts_paths_else_the_first() -> None:
    assert profile("auto").knowledge == ("hop_path/triples",)
    assert profile("auto:builtin").knowledge == ("hop_path/triples",)
    assert profile("auto", knowledge=("none", "random", "rigel/template")).knowledge == ("rigel/triples",)
    assert profile("auto", knowledge=("random", "oracle")).knowledge == ("random/triples",)
    linked = profile("auto", retrieval={"topics": "both"})
    assert linked.knowledge == ("hop_path/triples", "hop_path@linked/triples")


def test_knowledge_of_several_answerers_is_what_any_of_them_reads_once() -> None:
    together = profile("auto", "builtin", retrieval={"topics": "linked"})
    apart = [one.knowledge for one in together.each_answerer]
    assert apart[0] == ("hop_path@linked/triples",)
    assert apart[1] == ("none/none", "random/triples", "rigel@linked/triples", "rigel@linked/template",
                        "hop_path@linked/triples")  # fmt: skip
    assert set(together.knowledge) == {name for names in apart for name in names}
    assert len(set(together.knowledge)) == len(together.knowledge) and together.knowledge[0] == apart[0][0]
    together.check_knowledge()


def test_profile_computes_where_any_answerer_is_auto() -> None:
    named = [("builtin",), ("builtin", "auto"), ("auto", "builtin"), ("auto:builtin",), ("agent:openai:m",)]
    assert [profile(*names).computes for names in named] == [False, True, True, True, False]


@pytest.mark.parametrize(("answerers", "field"), [(("auto",), "answerer"), (("builtin", "auto"), "more")])
def test_answerer_without_facts_to_compute_from_is_refused_whatever_others_read(
    answerers: tuple[str, ...], field: str
) -> None:
    with pytest.raises(ConfigError, match=rf"answering\.{field} 'auto' computes from a retriever's facts.*only none"):
        profile(*answerers, knowledge=("none",))


def test_explorer_starts_from_topics_whatever_knowledge_is_listed() -> None:
    alone = profile("agent:openai:m")
    assert alone.knowledge == ("topics/triples",) and alone.retrieval.retrievers[-1] == "topics"
    assert (alone.computes, alone.explores) == (False, True)
    alone.check_knowledge()
    both = profile("gcr:hf:x", "builtin", retrieval={"topics": "both", "retrievers": ["random"]})
    assert both.retrieval.retrievers == ("random", "topics")
    assert [one.knowledge[:2] for one in both.each_answerer] == [
        ("topics/triples", "topics@linked/triples"), ("none/none", "random/triples"),
    ]  # fmt: skip
    assert profile("builtin", "agent:openai:m").retrieval.retrievers[-1] == "topics"
    assert profile("auto", "builtin").retrieval == Profile().retrieval, "others have no topics alone"
    listed = profile("agent:openai:m", retrieval={"retrievers": ["topics", "random"]})
    assert listed.retrieval.retrievers == ("topics", "random")
    again = make_profile(both.model_dump(mode="json"))
    assert again == both


def test_explorer_alone_needs_no_training_questions() -> None:
    given = profile("agent:openai:m", retrieval={"retrievers": ["topics"]})
    assert not given.learns and given.needed_splits == {"test": "its questions are answered and scored"}


def test_further_answerers_do_not_decide_what_the_first_one_says() -> None:
    assert profile("auto", "builtin").answering.decisive() == profile("auto").answering.decisive()
    assert profile("auto").answering.decisive() != profile("builtin").answering.decisive()


@pytest.mark.parametrize(
    ("key", "wrong"),
    [
        ("adapt", "perhaps"), ("start", "afresh"), ("hops", 0), ("hops", 4), ("generated", -1), ("examples", 0),
        ("steps", -1), ("batch_size", 0), ("candidates", 1), ("learning_rate", 0.0), ("encoder_learning_rate", -1.0),
        ("missing_relation_rate", 1.0), ("calibration_questions", 19), ("threshold", 1.1),
    ],
)  # fmt: skip
def test_label_parser_option_out_of_range_is_refused_by_name(key: str, wrong: object) -> None:
    with pytest.raises(ConfigError, match=rf"label_parser\.{key}"):
        make_profile({"label_parser": {key: wrong}})


def test_label_parser_may_train_nothing_and_make_no_questions() -> None:
    options = make_profile({"label_parser": {"steps": 0, "generated": 0, "threshold": 0, "hops": 3}}).label_parser
    assert (options.steps, options.generated, options.threshold, options.hops) == (0, 0, 0.0, 3)
    with pytest.raises(ValueError, match="frozen"):
        options.steps = 5


def test_checkpoints_of_the_label_parser_do_not_decide_what_it_learns() -> None:
    plain, other = LabelParserOptions(), LabelParserOptions(checkpoint_seconds=1.0)
    assert plain.decisive() == other.decisive()
    assert plain.decisive() != LabelParserOptions(steps=1).decisive()
