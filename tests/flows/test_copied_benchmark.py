"""A benchmark that was copied out of a home is whole in itself: the home may be tidied, the copy may be moved."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from flows.cli import answerability as answerability_cli
from flows.cli.app import app
from kgqa_core.config import make_profile
from kgqa_core.errors import KgqaError
from kgqa_core.papers.grailqability.builder.build import build
from kgqa_core.store.artifacts import ArtifactRef, Home, write_json
from kgqa_core.store.gc import sweep
from kgqa_core.workspace import Workspace
from tests.support.register_benchmark import OPTIONS, write_inputs

LATER = 3600.0


def made_in(home: Home, folder: Path) -> ArtifactRef:
    """The benchmark of the register over a graph that is an artifact of the home, as a flow makes both."""
    graph, questions = write_inputs(folder)
    return compute(home, graph, questions)


def compute(home: Home, graph: Path, questions: Path) -> ArtifactRef:
    def copied(out: Path, work: Path) -> dict[str, int]:
        shutil.copytree(graph, out, dirs_exist_ok=True)
        return {}

    kg, _ = home.compute("kg", "a" * 64, copied, {})

    def fill(out: Path, work: Path) -> dict[str, Any]:
        return build(Workspace(out), kg=kg.folder, questions=questions, options=OPTIONS, seed=7)

    made_of = {"inputs": {"kg": kg.digest}}
    return home.compute("answerability", "b" * 64, fill, {"made_of": made_of})[0]


def tidied(home: Home) -> None:
    """The home after later runs, of which no one needs the benchmark."""
    home.let_go()
    for number, status in enumerate(("done", "made")):
        name = time.strftime(f"%Y%m%d-%H%M%S-000{number}", time.gmtime(time.time() + LATER))
        (home.root / "runs" / name).mkdir()
        write_json(home.root / "runs" / name / "run.json", {"run_id": name, "status": status, "stages": []})
    sweep(home.root, keep=1)
    assert not list((home.root / "artifacts" / "kg").iterdir())


def verified(folder: Path) -> bool:
    result = CliRunner().invoke(app, ["answerability", "verify", str(folder), "--json"])
    assert result.exit_code == 0, (result.output, result.exception)
    return '"clean": true' in result.stdout


@pytest.mark.slow
def test_a_copy_outlives_the_graph_in_the_home_and_can_be_moved(
    tmp_path: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(own_home).prepare()
    made = made_in(home, tmp_path)
    profile = make_profile(
        {"kg": {"files": [str(tmp_path / "facts.tsv")]}, "questions": {"path": str(tmp_path / "questions.jsonl")}}
    )
    data = {"made": made, "run_id": "r"}
    monkeypatch.setattr("flows.answerability.build_answerability", lambda profile, graph: data)
    words = ["answerability", "build", "--questions", str(tmp_path / "questions.jsonl"), "--out", "copy"]
    monkeypatch.chdir(tmp_path)
    built = CliRunner().invoke(app, [*words, "--kg", str(tmp_path / "facts.tsv"), "--home", str(own_home)])
    assert built.exit_code == 0, (built.output, built.exception)
    tidied(home)
    assert verified(tmp_path / "copy")
    (tmp_path / "elsewhere").mkdir()
    moved = (tmp_path / "copy").rename(tmp_path / "elsewhere" / "moved")
    assert verified(moved)
    with pytest.raises(KgqaError, match="holds another answerability"):
        other = profile.model_copy(update={"kg": profile.kg.model_copy(update={"files": ("other.tsv",)})})
        answerability_cli._claim(moved, other, None, False)


@pytest.mark.slow
def test_a_benchmark_of_another_home_comes_from_the_store_and_is_read_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "store").mkdir()
    monkeypatch.setenv("KGQA_STORE", f"file://{tmp_path / 'store'}")
    one, two = Home(tmp_path / "one").prepare(), Home(tmp_path / "two").prepare()
    inputs = write_inputs(tmp_path)
    made = compute(one, *inputs)
    shutil.rmtree(one.root)
    fetched = [two.find(kind, letter * 64) for kind, letter in (("kg", "a"), ("answerability", "b"))]
    assert fetched[1] is not None and fetched[1].digest == made.digest
    assert verified(fetched[1].folder)
    moved = two.root.rename(tmp_path / "moved")
    assert verified(moved / fetched[1].folder.relative_to(two.root))
