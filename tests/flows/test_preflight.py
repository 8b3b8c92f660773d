"""What a run needs is looked at before it starts."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from flows.abstention import profile_for
from flows.cli._session import check_data, choose_profile
from flows.preflight import check
from kgqa_core.config import Profile, make_profile
from kgqa_core.errors import ConfigError, InputError, KgqaError, ModelError, QuestionFileError
from kgqa_core.retrieval.registry import RETRIEVERS
from tests.support.forked_command import forked_kgqa


def write_rows(path: Path, more: list[dict[str, object]]) -> Path:
    """Questions about one triple; more: further fields of each."""
    row = {"question": "a?", "topic_entities": ["a"], "answers": ["b"]}
    path.write_text("".join(json.dumps({"id": str(n), **row, **own}) + "\n" for n, own in enumerate(more)))
    return path


def profile_of(folder: Path, rows: list[dict[str, object]], *layers: dict[str, object]) -> Profile:
    (folder / "graph.tsv").write_text("a\tknows\tb\n")
    path = write_rows(folder / "own.jsonl", rows)
    return make_profile({"kg": {"files": [str(folder / "graph.tsv")]}, "questions": {"path": str(path)}}, *layers)


NO_TRAINING: dict[str, object] = {"retrieval": {"retrievers": ["random"]}, "answering": {"knowledge": ["none"]}}


@pytest.mark.parametrize(
    ("splits", "word"),
    [
        (["dev", "test", "test"], "in train "),
        (["train", "test", "test"], "in dev "),
        (["train", "dev", "dev"], "in test "),
        ([None], "give at least 3 questions"),
        ([None, None], "give at least 3 questions"),
    ],
)
def test_questions_that_leave_a_needed_split_empty_are_refused_before_anything_is_built(
    tmp_path: Path, splits: list[str | None], word: str
) -> None:
    with pytest.raises(QuestionFileError, match=re.escape(word)) as fault:
        check(profile_of(tmp_path, [{"split": split} for split in splits]))
    assert "own.jsonl" in str(fault.value)


def test_a_run_that_trains_nothing_needs_only_the_questions_that_it_answers(tmp_path: Path) -> None:
    check(profile_of(tmp_path, [{"split": "test"}], NO_TRAINING))
    with pytest.raises(QuestionFileError, match="in test "):
        check(profile_of(tmp_path, [{"split": "train"}], NO_TRAINING))


def test_hops_that_reach_no_training_question_are_refused_and_those_that_are_not_set_are_not(tmp_path: Path) -> None:
    rows = [{"relation_path": ["knows"] * 3, "split": split} for split in ("train", "dev", "test")]
    check(profile_of(tmp_path, rows, {"rigel": {"hops": 3}}))
    with pytest.raises(ConfigError, match="hop_path.max_hops is 2.*set hop_path.max_hops=3"):
        check(profile_of(tmp_path, rows, {"rigel": {"hops": 3}, "hop_path": {"max_hops": 2}}))
    only_rigel = {"retrieval": {"retrievers": ["rigel"]}, "answering": {"knowledge": ["rigel"]}}
    check(profile_of(tmp_path, rows, {"hop_path": {"max_hops": 2}}, only_rigel))


@pytest.mark.parametrize(
    ("linked", "starts"),
    [({"retrieval": {"topics": "both"}}, True), ({"rigel": {"soft_start": True}}, True), ({}, False)],
)
def test_the_encoder_of_linking_is_looked_at_where_questions_are_linked(
    tmp_path: Path, linked: dict[str, object], starts: bool
) -> None:
    (tmp_path / "graph.tsv").write_text("a\tknows\tb\n")
    write_rows(tmp_path / "asked.jsonl", [{}, {}, {}])
    profile = make_profile(
        {
            "kg": {"files": [str(tmp_path / "graph.tsv")]},
            "questions": {"path": str(tmp_path / "asked.jsonl")},
            "linking": {"context": "encoder", "encoder": str(tmp_path / "no_model")},
        },
        linked,
    )
    if not starts:
        check(profile)
        return
    with pytest.raises(KgqaError, match="linking.encoder"):
        check(profile)


def test_each_of_several_question_sets_is_looked_at_and_all_their_faults_are_told(tmp_path: Path) -> None:
    good = write_rows(tmp_path / "good.jsonl", [{"split": split} for split in ("train", "dev", "test")])
    untested = write_rows(tmp_path / "untested.jsonl", [{"split": split} for split in ("train", "dev", "dev")])
    files = {"good": good, "untested": untested, "gone": tmp_path / "gone.jsonl"}
    sets = [{"name": name, "path": str(path)} for name, path in files.items()]
    with pytest.raises(QuestionFileError) as fault:
        check(profile_of(tmp_path, [{}], {"questions": sets}))
    lines = str(fault.value).splitlines()
    assert [line.partition(": ")[0] for line in lines] == ["question set 'untested'", "question set 'gone'"]
    assert "in test " in lines[0] and "gone.jsonl" in lines[1]
    check(profile_of(tmp_path, [{}], {"questions": sets[:1]}))


def learning(name: str) -> dict[str, object]:
    """Options with a retriever of the registry; nothing is searched for what is not annotated."""
    return {
        "retrieval": {"retrievers": [name]},
        "answering": {"knowledge": ["none"]},
        "hop_path": {"searched_paths": 0},
    }


@pytest.mark.parametrize("name", RETRIEVERS)
def test_what_has_nothing_to_learn_from_is_refused_and_says_what_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("flows.preflight.check_endpoint", lambda spec, llm: None)
    annotated: dict[str, object] = {"s_expression": "(JOIN (R knows) a)", "relation_path": ["knows"]}
    annotated["gold_triples"] = [["a", "knows", "b"]]
    splits = [{"split": split} for split in ("train", "dev", "test")]
    own = learning(name)
    spec = RETRIEVERS[name]
    needs = spec.learns_from(spec.options(profile_of(tmp_path, [{}], own)))
    if "answers" in needs or not needs:
        check(profile_of(tmp_path, splits, own))
        return
    with pytest.raises(QuestionFileError, match=rf"{name}.* learns from \S+( or \S+)?, and none of the 1 training"):
        check(profile_of(tmp_path, splits, own))
    for field in needs:
        key = field.replace("relation_paths", "relation_path")
        check(profile_of(tmp_path, [{**split, key: annotated[key]} for split in splits], own))


def test_files_and_encoders_that_training_reads_are_looked_for(tmp_path: Path) -> None:
    rows = [{"split": split, "relation_path": ["knows"]} for split in ("train", "dev", "test")]
    ranking = {"retrieval": {"retrievers": ["rank_pair"]}, "answering": {"knowledge": ["none"]}}
    gone = str(tmp_path / "gone")
    with pytest.raises(InputError, match="relation_ranking.training_sets .*gone' is not there"):
        check(profile_of(tmp_path, rows, ranking, {"relation_ranking": {"training_sets": [gone]}}))
    for parser in ("rng", "decode"):
        own = {
            "answering": {"answerer": "auto"},
            "symbolic": {"parser": parser},
            "parsing": {parser: {"encoder": gone}},
        }
        with pytest.raises(ModelError, match=f"parsing.{parser}.encoder .*gone"):
            check(profile_of(tmp_path, rows, own))


def test_an_abstainer_is_given_no_passages() -> None:
    with pytest.raises(ConfigError, match="'rigel/both' holds passages.* write rigel/triples"):
        profile_for(make_profile({"abstention": {"knowledge": "rigel/both"}}))


def test_every_answerer_is_looked_at(tmp_path: Path) -> None:
    answering = {"answerers": ["builtin", f"hf:{tmp_path / 'no_model'}"], "knowledge": ["none"]}
    with pytest.raises(ModelError, match="answering.more .*no_model"):
        check(profile_of(tmp_path, [{"split": "test"}], {**NO_TRAINING, "answering": answering}))


def test_a_linker_without_its_key_is_refused(tmp_path: Path) -> None:
    service = {"api": "tagme", "url": "http://127.0.0.1:9/tag", "key_env": "KGQA_NO_SUCH_KEY"}
    rows = [{"split": name} for name in ("train", "dev", "test")]
    linked = {"linking": {"service": service}, "retrieval": {"topics": "both"}}
    with pytest.raises(ConfigError, match="KGQA_NO_SUCH_KEY is not in the environment"):
        check(profile_of(tmp_path, rows, linked))
    with pytest.raises(ConfigError, match="linking.service.url .* holds a user or password"):
        check(profile_of(tmp_path, rows, {"linking": {"service": {**service, "url": "http://me:pw@h/tag"}}}))


def test_a_chooser_behind_an_endpoint_without_chat_is_refused(tmp_path: Path) -> None:
    base = {"endpoints": {"base": {"base_url": "http://127.0.0.1:9/v1", "api": "completions"}}}
    auto = {"answering": {"answerer": "auto", "knowledge": ["random"]}, "symbolic": {"chooser": "openai:m@base"}}
    with pytest.raises(ModelError, match="JSON schema of the reply"):
        check(profile_of(tmp_path, [{"split": name} for name in ("train", "dev", "test")], {"llm": base, **auto}))


@pytest.mark.parametrize("name", ["metaqa", "wikidata-mini", "zjqa"])
def test_a_profile_whose_data_is_elsewhere_says_where_it_looked_and_how_to_name_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    profile = choose_profile(name)
    with pytest.raises(InputError, match=f"profile {name} is not part of the package") as fault:
        check_data(profile)
    folder = tmp_path / "shared" / "data"
    assert f"{folder}/" in str(fault.value)
    settings = dict(re.findall(r"--set ([a-z.]+)='?([^' ]+(?:, [^' ]+)*\]|[^' ]+)", str(fault.value)))
    assert sorted(settings) == ["kg.files", "questions.path"]
    copy = [f"{key}={value.replace('DATA', str(tmp_path / 'mine'))}" for key, value in settings.items()]
    own = choose_profile(name, settings=copy)
    assert [Path(path).relative_to(tmp_path / "mine") for path in own.kg.files] == [
        Path(path).relative_to("../shared/data") for path in profile.kg.files
    ]
    check_data(own)  # what a user names is looked for by `check`
    for path in (*profile.kg.files, str(profile.questions.path)):
        (folder / Path(path).relative_to("../shared/data")).parent.mkdir(parents=True, exist_ok=True)
        (folder / Path(path).relative_to("../shared/data")).touch()
    check_data(profile)
    check_data(choose_profile("atlas"))


def test_a_command_refuses_a_profile_whose_data_is_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    done = forked_kgqa("run", "--profile", "zjqa", "--home", tmp_path / "home", cwd=tmp_path / "work")
    assert done.code == 2
    assert "profile zjqa is not part of the package" in " ".join(done.err.split())
