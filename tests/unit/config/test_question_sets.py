"""Lists of question sets and of answerers in a profile: what they become, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from flows.cli._session import choose_profile
from kgqa_core.config import make_profile, parse_settings
from kgqa_core.errors import ConfigError

TWO = {"questions": [{"name": "people", "path": "p.jsonl"}, {"name": "towns", "path": "t.jsonl", "language": "de"}]}


def refusal(*layers: dict) -> str:
    with pytest.raises(ConfigError) as caught:
        make_profile(*layers)
    return str(caught.value)


def test_each_set_is_a_profile_of_its_own_the_first_one_first() -> None:
    given = make_profile(TWO, {"seed": 3})
    each = given.each_set
    assert given.set_names == ("people", "towns")
    assert [(one.questions.name, one.questions.language, one.seed) for one in each] == [
        ("people", "en", 3), ("towns", "de", 3),
    ]  # fmt: skip
    assert all(one.further_questions == () and one.trained_on == () for one in each)
    assert make_profile(given.model_dump(mode="json")) == given
    alone = make_profile({"questions": {"name": "people"}})
    assert alone.each_set == (alone,)
    assert make_profile({"questions": [{"name": "people"}]}) == alone


def test_sets_that_train_together_know_each_other() -> None:
    each = make_profile(TWO, {"questions_train": "union"}).each_set
    assert [[one.name for one in own.trained_on] for own in each] == [["people", "towns"]] * 2
    assert make_profile(each[1].model_dump(mode="json")) == each[1]


def test_all_faults_of_a_list_are_told_at_once_with_their_set() -> None:
    text = refusal({"questions": [{"name": "a", "sorce": "x"}, {"name": "b", "langage": "en"}, {"hops": "three"}]})
    assert "3 fault(s)" in text
    assert "\n  unknown key 'questions.sorce'; did you mean 'questions.source'?" in text
    assert "question set 2: unknown key 'questions.langage'; did you mean 'questions.language'?" in text
    assert "question set 3: questions.hops" in text


def test_sets_need_different_names_and_a_list_at_least_one() -> None:
    assert "several question sets are named people" in refusal({"questions": [{"name": "people"}, {"name": "people"}]})
    assert "questions is an empty list" in refusal({"questions": []})
    assert "leave out further_questions" in refusal(TWO, {"further_questions": [{"name": "c"}]})


def test_a_single_key_of_several_sets_is_refused_and_other_files_replace_all() -> None:
    with pytest.raises(ConfigError, match=r"several question sets, and questions.path does not say of which"):
        make_profile(TWO, parse_settings(["questions.path=x"]))
    written_out = make_profile(TWO).model_dump(mode="json")
    for base in (TWO, written_out):
        assert make_profile(base, {"questions": {"name": "new", "source": "jsonl", "path": "n"}}).set_names == ("new",)
        again = make_profile(base, {"questions": [{"name": "x"}, {"name": "y"}]})
        assert again.set_names == ("x", "y") and again.questions.language == "en"
    assert make_profile({}, parse_settings(["questions=[{name: a}, {name: b}]"])).set_names == ("a", "b")


def test_a_key_under_the_name_of_a_set_changes_that_set() -> None:
    for base in (TWO, make_profile(TWO).model_dump(mode="json")):
        given = make_profile(
            base, parse_settings(["questions.towns.path=x", "questions.towns.generated.size=19", "seed=3"])
        )
        assert [(one.name, one.path, one.language) for one in (given.questions, *given.further_questions)] == [
            ("people", "p.jsonl", "en"), ("towns", "x", "de"),
        ]  # fmt: skip
        assert given.further_questions[0].generated.size == 19 != given.questions.generated.size
        with pytest.raises(ConfigError, match=r"questions.town does not say .* one of the names people, towns"):
            make_profile(base, parse_settings(["questions.town.path=x"]))
    assert TWO["questions"][1] == {"name": "towns", "path": "t.jsonl", "language": "de"}, "the layer stays as it was"
    with pytest.raises(ConfigError, match="unknown key 'questions.towns.pat'"):
        parse_settings(["questions.towns.pat=x"])


def test_some_of_the_sets_are_taken_by_name() -> None:
    given = make_profile(TWO, parse_settings(["sets=[towns]"]))
    assert given.set_names == ("towns",) and given.questions.language == "de"
    assert make_profile(given.model_dump(mode="json")) == given
    assert make_profile(TWO, {"sets": []}).set_names == ("people", "towns")
    assert "sets names 'town', which is none of people, towns" in refusal(TWO, {"sets": ["towns", "town"]})
    assert "sets names 'towns', which is none of people" in refusal(
        {"questions": {"name": "people"}, "sets": ["towns"]}
    )
    each = make_profile(TWO, {"sets": ["people", "towns"]}).each_set
    assert make_profile(each[1].model_dump(mode="json")) == each[1], "a record of one set is read again"


def test_files_on_the_command_line_are_sets_named_by_file_or_folder(tmp_path: Path) -> None:
    graph = [tmp_path / "g.tsv"]
    two = choose_profile(None, graph, [tmp_path / "people.jsonl", tmp_path / "towns.jsonl"])
    assert two.set_names == ("people", "towns") and two.name == "people-towns"
    assert [one.questions.path for one in two.each_set] == [
        str(tmp_path / "people.jsonl"), str(tmp_path / "towns.jsonl"),
    ]  # fmt: skip
    alike = choose_profile(None, graph, [tmp_path / "a" / "test.jsonl", tmp_path / "b" / "test.jsonl"])
    assert alike.set_names == ("a-test", "b-test")
    assert choose_profile(None, graph, [tmp_path / "people.jsonl"]).name == "people"


def test_answerers_is_the_answerer_and_more_in_one_list() -> None:
    listed = make_profile({"answering": {"answerers": ["builtin", "auto", "openai:m@e"]}}).answering
    assert (listed.answerer, listed.more) == ("builtin", ("auto", "openai:m@e"))
    shipped = {"answering": {"answerer": "auto", "more": ["builtin"], "limit": 3}}
    changed = make_profile(shipped, parse_settings(["answering.answerers=[openai:m, builtin]"])).answering
    assert (changed.answerer, changed.more, changed.limit) == ("openai:m", ("builtin",), 3)
    one = make_profile({"answering": {"answerers": ["auto", "builtin"]}}, {"answering": {"answerer": "openai:m"}})
    assert (one.answering.answerer, one.answering.more) == ("openai:m", ("builtin",))
    assert "leave out more" in refusal({"answering": {"answerers": ["auto"], "more": ["builtin"]}})
    assert "must be a list of answerers" in refusal({"answering": {"answerers": "auto"}})
    assert "must be a list of answerers" in refusal({"answering": {"answerers": []}})
    quick = choose_profile(None, [Path("g.tsv")], settings=["answering.answerers=[builtin, auto]"])
    assert (quick.answering.answerer, quick.answering.more) == ("builtin", ("auto",))
