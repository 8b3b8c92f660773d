"""A finished run is an MLflow model: it loads and answers elsewhere, refers to its home, and its answers are traced."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from prefect.blocks.system import Secret

from kgqa_core.errors import ArtifactError
from kgqa_core.runs.records import newest_run, stage_artifact
from kgqa_core.store.artifacts import MANIFEST, Home
from tasks.tracking.model_files import code_files
from tasks.tracking.model_reference import open_system
from tests.support.command import Outcome, environment, run_python
from tests.support.films_home import films_home
from tests.support.forked_command import forked_kgqa
from tests.support.mlflow_serve import served_model
from tests.support.prefect_server import on_shared_server, shared_environment
from tests.support.toy import write_graph, write_questions

SMALL = {
    "retrieval.retrievers": "[hop_path]", "answering.knowledge": "[hop_path]", "answering.answerer": "auto:builtin",
    "hop_path.encoder": "scratch", "hop_path.scratch_width": "32", "hop_path.epochs": "2",
    "label_parser.steps": "0",
    "answering.limit": "6", "evaluation.bootstrap": "100", "tracking.trace_share": "1.0",
    "operations.secrets": "{MODEL_LAB_KEY: lab-key}",
}  # fmt: skip
SECRETS = {
    "OPENAI_API_KEY": "sk-very-secret-1",
    "AWS_SECRET_ACCESS_KEY": "very-secret-2",
    "MODEL_LAB_KEY": "very-secret-3",
}
CHAMPION = "models:/kgqa-register-own@champion"
STEPS = ["linking", "retrieval", "knowledge", "forms", "wording"]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with one finished run of a system that computes and has a language model word the result."""
    folder = tmp_path_factory.mktemp("model")
    write_questions(folder / "own.jsonl", write_graph(folder / "register.tsv", 2000), 200)
    done = kgqa("run", "--json", *inputs(folder), "--home", folder / "home")
    assert done.code == 0, done.err[-3000:]
    return folder / "home"


def inputs(folder: Path) -> list[str | Path]:
    """The options by which the run was made."""
    settings = [word for key, value in SMALL.items() for word in ("--set", f"{key}={value}")]
    return ["--kg", folder / "register.tsv", "--questions", folder / "own.jsonl", *settings]


def kgqa(*words: str | Path) -> Outcome:
    """A command of somebody who has the secrets."""
    return forked_kgqa(*words, env=SECRETS)


def tracked(home: Path) -> dict[str, str]:
    """The environment of whoever uses MLflow's own commands with this home."""
    return {
        "MLFLOW_TRACKING_URI": f"sqlite:///{home / 'mlflow' / 'mlflow.db'}", "MLFLOW_EXPERIMENT_NAME": "kgqa",
        "MODEL_LAB_KEY": SECRETS["MODEL_LAB_KEY"],
    }  # fmt: skip


@pytest.fixture(autouse=True)
def lab_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The secret that the profile names, for systems that this process opens."""
    monkeypatch.setenv("MODEL_LAB_KEY", SECRETS["MODEL_LAB_KEY"])


def question(home: Path, number: int = 0) -> dict[str, Any]:
    return dict(json.loads((home.parent / "own.jsonl").read_text().splitlines()[number]))


def python(home: Path, script: str, cwd: Path, **env: str) -> dict[str, Any]:
    """What a fresh process that knows MLflow's address prints as its last line."""
    (cwd / "script.py").write_text(script, encoding="utf-8")
    done = run_python([cwd / "script.py"], env=tracked(home) | env, cwd=cwd, timeout=600)
    assert done.code == 0, done.err[-3000:]
    return done.json


def model_of(home: Path) -> Path:
    """The folder of the logged model."""
    [file] = (home / "mlflow" / "artifacts" / "models").glob("*/artifacts/MLmodel")
    return file.parent


def reference_of(home: Path) -> dict[str, Any]:
    import yaml

    model = yaml.safe_load((model_of(home) / "MLmodel").read_text(encoding="utf-8"))
    return dict(model["flavors"]["python_function"]["config"])


LOAD = f"""
import json, mlflow
model = mlflow.pyfunc.load_model("{CHAMPION}")
told = {{"input": [{{"role": "user", "content": QUESTION}}]}}
reply = model.predict(told)
always = model.predict(told | {{"custom_inputs": {{"topics": [TOPIC], "min_confidence": 0.0}}}})
experiment = mlflow.get_experiment_by_name("kgqa").experiment_id
traces = mlflow.search_traces(
    locations=[experiment], filter_string="tags.`kgqa.command` = 'model'", return_type="list"
)
print(json.dumps({{"reply": reply, "always": always, "run": model.metadata.run_id, "id": model.metadata.model_id,
    "traces": [[[span.name for span in one.data.spans], one.info.tags.get("kgqa.run_id")] for one in traces]}}))
"""


@pytest.mark.slow
def test_the_champion_loads_in_a_fresh_process_and_answers_as_ask_does(home: Path, tmp_path: Path) -> None:
    record, asked = newest_run(Home(home)), question(home)
    script = f"QUESTION, TOPIC = {asked['question']!r}, {asked['topic_entities'][0]!r}\n{LOAD}"
    told = python(home, script, tmp_path, MLFLOW_ENABLE_ASYNC_TRACE_LOGGING="false")
    alone = kgqa("ask", asked["question"], "--home", home, "--json", "--trace-share", "0")
    assert alone.code == 0, alone.err[-3000:]
    outputs = told["reply"]["custom_outputs"]
    shown = {key: value for key, value in alone.json.items() if key not in ("seconds", "load_seconds")}
    assert (outputs["answer"], outputs["run"]) == (shown, record["run_id"])
    [item] = told["reply"]["output"]
    cited = [f"[{number}] {text}" for number, text in enumerate(shown["proof"][:5], start=1)]
    assert shown["answers"] and shown["proof_rows"] == len(cited) > 0
    assert item["content"][0]["text"] == ", ".join(shown["answers"]) + " [1]\n\n" + "\n".join(cited)
    assert told["always"]["custom_outputs"]["answer"]["min_confidence"] == 0.0
    assert told["always"]["custom_outputs"]["answer"]["topics"] == [
        {"key": asked["topic_entities"][0], "name": asked["topic_entities"][0]}
    ]
    assert told["run"] == record["mlflow_run_id"] and told["id"] == model_of(home).parent.name
    assert told["traces"] == [[["predict", *STEPS], record["run_id"]]] * 2
    assert not list(tmp_path.glob("mlruns*")) and not list(tmp_path.glob("*.db"))


@pytest.mark.slow
def test_the_model_holds_code_requirements_and_references_and_neither_pickles_nor_secrets(home: Path) -> None:
    folder = model_of(home)
    files = {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}
    own = {file for file in files if "__pycache__" not in file} - {"registered_model_meta"}  # once it was loaded
    assert {file for file in own if not file.startswith("code/")} == {
        "MLmodel", "conda.yaml", "input_example.json", "model_code.py", "python_env.yaml", "requirements.txt",
        "serving_input_example.json",
    }  # fmt: skip
    assert {file.removeprefix("code/") for file in own if file.startswith("code/")} == set(code_files())
    assert sum((folder / file).stat().st_size for file in own if not file.startswith("code/")) < 60_000
    text = (folder / "requirements.txt").read_text(encoding="utf-8")
    assert {"mlflow", "torch", "duckdb"} <= {line.partition("==")[0] for line in text.splitlines()}
    assert not re.search("kgqa|/|@", text)
    reference, record = reference_of(home), newest_run(Home(home))
    assert (reference["home"], reference["run"]) == (str(home), record["run_id"])
    assert set(reference["artifacts"]) == {"kg", "dkg", "hop_path", "label_parser", "mentions"}
    for name, own in reference["artifacts"].items():
        ref = stage_artifact(record, name)
        assert (home / own["path"], own["digest"]) == (ref.folder, ref.digest)
    for file in home.rglob("*"):
        if file.is_file() and file.is_relative_to(home / "mlflow"):
            content = file.read_bytes()
            assert not any(secret.encode() in content for secret in SECRETS.values()), file


@pytest.mark.slow
def test_a_secret_of_the_profile_comes_from_its_block_or_is_asked_for(home: Path, tmp_path: Path) -> None:
    script = f"""
import json, os, mlflow
try:
    mlflow.pyfunc.load_model("{CHAMPION}")
    print(json.dumps({{"key": os.environ.get("MODEL_LAB_KEY")}}))
except Exception as fault:
    print(json.dumps({{"said": str(fault)}}))
"""
    with on_shared_server():
        Secret(value="of the block").save("lab-key", overwrite=True)
        given = shared_environment() | {"MODEL_LAB_KEY": ""}
        assert python(home, script, tmp_path, **given) == {"key": "of the block"}
        Secret.delete("lab-key", _sync=True)  # type: ignore[call-arg]
        said = python(home, script, tmp_path, **given)["said"]
    assert "no Secret block 'lab-key'" in said and "set MODEL_LAB_KEY in the environment" in said


@pytest.mark.slow
def test_a_missing_or_changed_artifact_is_named_with_the_way_out(home: Path, tmp_path: Path) -> None:
    reference = reference_of(home)
    folder = home / reference["artifacts"]["hop_path"]["path"]
    os.rename(folder, tmp_path / "away")
    try:
        with pytest.raises(
            ArtifactError, match="lacks its artifact hop_path.*`kgqa run` with the same profile"
        ) as lost:
            open_system(reference)
        assert str(folder) in str(lost.value)
        script = f"""
import json, mlflow
try:
    mlflow.pyfunc.load_model("{CHAMPION}")
except Exception as fault:
    print(json.dumps({{"said": str(fault)}}))
"""
        assert "lacks its artifact hop_path" in python(home, script, tmp_path)["said"]
    finally:
        os.rename(tmp_path / "away", folder)
    other = json.loads(json.dumps(reference))
    other["artifacts"]["label_parser"]["digest"] = "0" * 64
    with pytest.raises(ArtifactError, match="artifact label_parser .* is not the one that this model was logged with"):
        open_system(other)
    with pytest.raises(ArtifactError, match="no finished run 'gone'"):
        open_system(reference | {"run": "gone"})


def test_a_home_that_moved_is_found_or_asked_for(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = films_home(tmp_path_factory, "moved")
    assert not list(model_of(moved).rglob(MANIFEST)), "the model has no artifact of its own"
    reference = reference_of(moved) | {"home": str(tmp_path / "old")}
    with pytest.raises(
        ArtifactError, match=r"old, which holds the system of this model, is not there.*KGQA_HOME=/path"
    ):
        open_system(reference)
    monkeypatch.setenv("KGQA_HOME", str(moved))
    system = open_system(reference)
    assert Path(system.store.path).is_relative_to(moved)
    assert system.ask("hey, whats the capital of norland").answer == "Norland City"


@pytest.mark.slow
def test_a_copy_whose_original_is_gone_answers_refreshes_and_loads(home: Path, tmp_path: Path) -> None:
    copy, asked = tmp_path / "copy", question(home)
    shutil.copytree(home, copy)
    home.rename(home.with_name("away"))
    try:
        for words, wanted in (
            (("refresh", *inputs(home.parent)), "nothing to do"),
            (("ask", asked["question"], "--run", "champion"), asked["answers"][0]),
            (("report",), str(copy)),
            (("gc",), "nothing to remove"),
        ):
            done = kgqa(*words, "--home", copy)
            assert done.code == 0 and wanted in done.out, (words, done.out, done.err[-3000:])
        script = f"""
import json, mlflow
model = mlflow.pyfunc.load_model("{CHAMPION}")
reply = model.predict({{"input": [{{"role": "user", "content": {asked["question"]!r}}}]}})
files = mlflow.MlflowClient().list_artifacts(model.metadata.run_id)
print(json.dumps([reply["custom_outputs"]["answer"]["answers"], [file.path for file in files]]))
"""
        answers, files = python(copy, script, tmp_path)
        assert asked["answers"][0] in answers and "report.html" in files
    finally:
        home.with_name("away").rename(home)


@pytest.mark.slow
def test_ask_and_answer_trace_the_share_that_is_wanted(home: Path, tmp_path: Path) -> None:
    record, asked = newest_run(Home(home)), question(home)
    done = kgqa("ask", asked["question"], "--home", home, "--json", "--own-process")  # the run's own share: all
    assert done.code == 0 and done.json["trace"].startswith("tr-"), done.err[-3000:]
    none = kgqa("ask", asked["question"], "--home", home, "--json", "--trace-share", "0")
    assert "trace" not in none.json
    rows = [{"id": f"q{n}", "question": question(home, n)["question"]} for n in range(4)]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ("--questions", tmp_path / "q.jsonl", "--out", tmp_path / "a.jsonl", "--home", home)
    wrote = kgqa("answer", *words, "--trace-share", "0.5")
    assert wrote.code == 0, wrote.err[-3000:]
    answers = {row["question"]: row for row in map(json.loads, (tmp_path / "a.jsonl").read_text().splitlines())}
    script = """
import json, mlflow
from mlflow import MlflowClient
experiment = mlflow.get_experiment_by_name("kgqa").experiment_id
traces = mlflow.search_traces(locations=[experiment], return_type="list")
print(json.dumps([{"id": one.info.trace_id, "tags": dict(one.info.tags),
    "run": one.info.request_metadata.get("mlflow.sourceRun"), "spans": [[
               span.name, span.inputs, span.outputs, span.end_time_ns - span.start_time_ns]
               for span in one.data.spans]} for one in traces]))
"""
    traces = python(home, script, tmp_path)
    by_command: dict[str, list[Any]] = {"ask": [], "answer": []}
    for one in traces:
        if one["tags"].get("kgqa.command") not in by_command:
            continue  # those of MLflow's own calls of the model
        by_command[one["tags"]["kgqa.command"]].append(one)
        assert one["tags"]["kgqa.run_id"] == record["run_id"] and one["run"] == record["mlflow_run_id"]
        root, *steps = one["spans"]
        assert root[0] == "kgqa" and [step[0] for step in steps] == STEPS
        assert all(step[3] > 0 for step in steps)
    [single] = by_command["ask"]
    assert single["id"] == done.json["trace"]
    assert single["spans"][0][2] == {key: done.json[key] for key in single["spans"][0][2]}
    assert len(by_command["answer"]) == 2
    for one in by_command["answer"]:
        row = answers[one["spans"][0][1]["question"]]
        assert one["spans"][0][2]["answers"] == row["answers"] and one["spans"][0][2]["topics"]
        assert one["spans"][2][2]["facts"] and one["spans"][4][2]["form"] == row["form"]


@pytest.mark.slow
def test_mlflow_models_serve_answers_over_http(home: Path, tmp_path: Path) -> None:
    asked, given = question(home), environment(**tracked(home), MLFLOW_DISABLE_TELEMETRY="true")
    with served_model([sys.executable, "-m", "mlflow"], CHAMPION, given, tmp_path) as server:
        code, reply = server.post({"input": [{"role": "user", "content": asked["question"]}]})
        assert code == 200 and reply["output"][0]["content"][0]["text"]
        assert reply["custom_outputs"]["run"] == newest_run(Home(home))["run_id"]
        topics = {"topics": ["Nobody"]}
        code, refused = server.post({"input": [{"role": "user", "content": "Who?"}], "custom_inputs": topics})
        assert code == 400 and "topic entity 'Nobody' is not in this graph" in refused["message"]
