"""What a run reads beside graph and questions is compared by what is in it, not by where it lies."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from kgqa_core.config import LinkingOptions, Profile, make_profile
from kgqa_core.store.artifacts import ArtifactRef, Home
from tasks.engine import key as caching
from tasks.linking import link_questions
from tasks.questions import load_more
from tasks.resume.inputs import (
    FEEDBACK,
    LEARNERS,
    LINKED,
    MORE,
    external_inputs,
    reads_same_inputs,
    trained_kinds,
    training_change,
    training_input_change,
    training_inputs,
)
from tasks.resume.refresh import other_sets
from tests.support.finished import finished_run, questions

FILES = ("more.jsonl", "texts.jsonl", "pairs.jsonl", "graphs.txt", "parser/weights")


@pytest.fixture
def home(own_home: Path) -> Home:
    return Home(own_home).prepare()


@pytest.fixture
def profile(tmp_path: Path) -> Profile:
    """A profile that reads a file of every sort."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("as it was")
    return profile_of(tmp_path)


def profile_of(folder: Path, **sections: dict[str, Any]) -> Profile:
    more = [{"name": "others", "path": str(folder / "more.jsonl")}]
    ranking = {"training_sets": [str(folder / "pairs.jsonl")], "amr_graphs": str(folder / "graphs.txt"),
               "amr_parser": f"amrlib:{folder / 'parser'}"}  # fmt: skip
    plain: dict[str, Any] = {
        "questions": {"more": more},
        "passages": {"corpus": str(folder / "texts.jsonl"), "retriever": "bm25"},
        "relation_ranking": ranking | {"encoder": "scratch"},
        "rigel": {"encoder": "scratch", "soft_start": True},
        "hop_path": {"encoder": "scratch"},
        "transfernet": {"encoder": "scratch"},
        "retrieval": {"retrievers": ["rigel", "hop_path", "transfernet", "rank_pair", "rank_amr"]},
        "answering": {"knowledge": ["passages", "rigel/rewritten"]},
    }
    return make_profile(plain, sections)


def made(home: Home, name: str, made_of: dict[str, Any]) -> ArtifactRef:
    """An artifact of a stage, with nothing in it but the stage's name."""

    def fill(out: Path, work: Path) -> dict[str, int]:
        (out / "name").write_text(name)
        return {}

    key = hashlib.sha256(name.encode()).hexdigest()
    return home.compute(name.partition("/")[0], key, fill, {"made_of": made_of, "run_id": "r"})[0]


def record_of(home: Home, profile: Profile, **inputs: Any) -> dict[str, Any]:
    """The record of a run that read what a profile reads now.  inputs: of the retriever."""
    refs = {name: made(home, name, {"outside": dict(read)}) for name, read in external_inputs(profile).items()}
    [more] = profile.questions.more
    how = {
        "options": {"options": more.decisive(), "seed": profile.seed},
        "outside": load_more.external_digests(options=more),
    }
    linking = {"options": {"options": profile.linking.decisive()}, "outside": {}}
    refs[MORE + more.name] = made(home, "questions/more", how)
    refs["linked"] = made(home, "linked/first", linking)
    refs["retriever"] = made(
        home,
        "retriever/of",
        {"outside": {"encoder": "scratch"}, "inputs": {"questions": refs["linked"].digest} | inputs},
    )
    stages = [{"name": name, "artifact": ref.model_dump()} for name, ref in refs.items()]
    return {"run_id": "r", "stages": [*stages, {"name": "linked", "artifact": made(home, "linked/2", {}).model_dump()}]}


@pytest.mark.parametrize("kind", LEARNERS)
def test_what_was_trained_alike_goes_on_and_other_options_and_seeds_do_not(
    kind: str, home: Home, profile: Profile
) -> None:
    assert set(LEARNERS) == set(trained_kinds(profile))
    stage, of = LEARNERS[kind]
    options = of(profile)
    [section] = [name for name in type(profile).model_fields if getattr(profile, name) is options]
    how = {"options": options.decisive(), "seed": profile.seed}
    trained = made(home, kind, {"options": how, "outside": dict(stage.external_digests(options=options))})
    assert training_change(kind, trained, profile) is None
    changed = {"size": 3} if kind == "corpus" else {"epochs": 3}
    other = profile.model_copy(update={section: options.model_copy(update=changed)})
    assert training_change(kind, trained, other) == f"the options of {kind} changed"
    assert training_change(kind, trained, profile.model_copy(update={"seed": 8})) == f"the seed of {kind} changed"
    if kind == "relation_ranker":
        Path(options.training_sets[0]).write_text("as it is now")
        told = "what relation_ranker learns from changed: training set 0"
        assert training_change(kind, trained, profile) == told


@pytest.mark.parametrize("file", FILES)
def test_a_file_of_any_sort_that_changed_is_noticed(file: str, home: Home, profile: Profile, tmp_path: Path) -> None:
    record = record_of(home, profile)
    assert reads_same_inputs(record, profile, home.root)
    (tmp_path / file).write_text("as it is now")
    assert not reads_same_inputs(record, profile, home.root)


def test_a_set_is_known_by_what_it_says_and_how_it_is_read(home: Home, profile: Profile, tmp_path: Path) -> None:
    learnt = training_inputs(record_of(home, profile))
    assert set(learnt) == {MORE + "others", LINKED}
    assert training_input_change(learnt, profile, home.root) is None
    (tmp_path / "elsewhere.jsonl").write_text("as it was")
    moved = [{"name": "others", "path": str(tmp_path / "elsewhere.jsonl")}]
    assert training_input_change(learnt, profile_of(tmp_path, questions={"more": moved}), home.root) is None
    for more, told in (
        ([{**moved[0], "language": "zh"}], "'others' is another"),
        ([], "'others' went"),
        ([*moved, {"name": "newer", "path": "x"}], "'newer' came"),
    ):
        changed = profile_of(tmp_path, questions={"more": more})
        assert training_input_change(learnt, changed, home.root) == f"the further question set {told}"
    (tmp_path / "more.jsonl").write_text("as it is now")
    assert training_input_change(learnt, profile, home.root) == "the further question set 'others' is another"


def test_a_soft_start_is_learnt_from_links_and_a_plain_one_is_not(home: Home, profile: Profile, tmp_path: Path) -> None:
    learnt = training_inputs(record_of(home, profile))
    other = profile_of(tmp_path, linking={"threshold": 0.5})
    assert (
        training_input_change(learnt, other, home.root)
        == "the questions that retriever learns from are linked otherwise"
    )
    assert "are not known" in str(training_input_change({MORE + "others": learnt[MORE + "others"]}, profile, home.root))
    plain = profile_of(tmp_path, linking={"threshold": 0.5}, rigel={"soft_start": False})
    assert training_input_change(learnt, plain, home.root) is None


def test_links_depend_on_what_the_encoder_of_their_context_runs_in(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(caching, "_version", lambda package: asked.append(package) or "1")
    refs = [ArtifactRef(kind=kind, path=f"/{kind}", digest=kind) for kind in ("kg", "mentions", "questions")]
    assert link_questions.find(*refs, LinkingOptions(context="encoder")) is None
    assert {"torch", "transformers", "tokenizers"} <= set(asked)


def test_feedback_is_that_of_the_run_that_is_meant_today(home: Home, tmp_path: Path) -> None:
    asked = questions(["one?", "two?"])
    digests = {}
    for run in ("20260101-000000-aaaa", "20260102-000000-bbbb"):
        answers = {"rigel/triples/m": {"q0000": run}}
        record = finished_run(home, run, {"rigel/-/-": {"q0000": {"hits_at_1": 1.0}}}, asked, answers)
        facts = made(home, f"facts/{run}", {})
        record["stages"].append({"name": "facts/rigel", "artifact": facts.model_dump()})
        (home.root / "runs" / run / "run.json").write_text(json.dumps(record))
        refs = {stage["name"]: stage["artifact"]["digest"] for stage in record["stages"]}
        digests[run] = {"questions": refs["questions"], "facts": facts.digest, "answers": refs["answers/rigel"]}
    first, second = digests
    plain = {"questions": {"more": []}, "rigel": {"soft_start": False}}
    learnt = {FEEDBACK: made(home, FEEDBACK, {"inputs": {"dkg": "another graph now", **digests[first]}})}

    def told(word: str | None, own: dict[str, ArtifactRef] = learnt) -> str | None:
        named = profile_of(tmp_path, **{**plain, "rigel": {"soft_start": False, "feedback": word}})
        return training_input_change(own, named, home.root)

    assert told(first) is told("20260101") is told("gone") is None
    assert told(second) == f"the feedback of retriever is that of another run ({second})"
    assert told(None) == "the feedback of retriever went" and told(first, {}) == "the feedback of retriever came"


def test_retrievers_of_sets_that_train_together_do_not_go_on_alone() -> None:
    sets = {"questions": [{"name": "people", "path": "p"}, {"name": "staff", "path": "s"}]}
    alone, together = (make_profile(sets, {"questions_train": how}).each_set[0] for how in ("each", "union"))
    assert other_sets(alone, alone) is None and other_sets(together, together) is None
    assert other_sets(together, alone) == "the retrievers were trained on people and staff, with questions_train union"
    assert other_sets(alone, together) == "the retrievers were trained on people, with questions_train each"
