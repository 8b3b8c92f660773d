"""The champion of a home as an MLflow model in a fresh environment: loaded, asked, and served over HTTP.

    python -m benchmarks.operation.fresh_model --work DIR [--home HOME] [--question TEXT …] [--keep]
        [--json benchmarks/results/fresh_model.json]

DIR lies outside the repository; HOME is a home with one champion, made in DIR from a graph of films without it.  A
virtual environment is made in DIR, and pip installs the model's own requirements.txt into it, from the registry that
pip is set to, and nothing else.  There, in an empty folder and without PYTHONPATH, `mlflow.pyfunc.load_model` loads
the model and answers, then `mlflow models serve --env-manager local` answers.  checks: what is true of the process
that loaded it: kgqa is not installed, the code is the model's.  refused: the reply to an unknown topic.  Times are of
one run each.  The environment is removed at the end, unless --keep.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mlflow

from benchmarks import results_file
from benchmarks.conditions import RESULTS, ROOT, conditions
from benchmarks.results_file import CONDITIONS
from kgqa_core.runs.records import current_champions
from kgqa_core.store.artifacts import Home
from tasks.tracking.mlflow_store import model_name, tracking_uri
from tests.support.command import kgqa
from tests.support.mlflow_serve import served_model
from tests.support.question_graph import triples

FIELDS = (*CONDITIONS, "model/...", "environment/...", "checks/...", "loaded/...", "served/...", "refused/...")
"""What the result file holds (benchmarks/results_file.py)."""
SEED = 13
QUESTIONS = ("what is the capital of norland", "how many films are there", "who is the president of Norland?")
SMALL = {
    "questions.generated.size": "150", "label_parser.generated": "150", "label_parser.steps": "40",
    "questions.generated.split_shares": "[0.6, 0.2, 0.2]", "hop_path.encoder": "scratch", "hop_path.epochs": "2",
    "answering.limit": "12", "evaluation.bootstrap": "100", "seed": str(SEED),
}  # fmt: skip

LOAD = """
import importlib.metadata, json, os, sys, time
began = time.perf_counter()
import mlflow
model = mlflow.pyfunc.load_model(sys.argv[1])
loaded = time.perf_counter() - began
replies, seconds = [], []
for question in json.loads(sys.argv[2]):
    began = time.perf_counter()
    replies.append(model.predict({"input": [{"role": "user", "content": question}]}))
    seconds.append(round(time.perf_counter() - began, 2))
import kgqa_core, tasks
try:
    installed = importlib.metadata.version("kgqa")
except importlib.metadata.PackageNotFoundError:
    installed = None
folders = [os.path.dirname(os.path.dirname(one.__file__)) for one in (kgqa_core, tasks)]
print(json.dumps({"load_seconds": round(loaded, 1), "seconds": seconds, "replies": replies, "kgqa": installed,
    "code": folders, "pythonpath": os.environ.get("PYTHONPATH"), "prefix": sys.prefix}))
"""


def make_home(folder: Path) -> Path:
    """A home with one run, the champion, over a graph of films and countries."""
    shutil.rmtree(folder / "home", ignore_errors=True)
    (folder / "films.nt").write_text("\n".join(triples()) + "\n", encoding="utf-8")
    words = [word for key, value in SMALL.items() for word in ("--set", f"{key}={value}")]
    done = kgqa("run", "--json", "--kg", folder / "films.nt", "--home", folder / "home", *words, served=False)
    if done.code:
        raise SystemExit(done.err[-3000:])
    return folder / "home"


def fresh_environment(uri: str) -> dict[str, str]:
    """This process's environment without what could lead to this checkout or its virtual environment."""
    left_out = ("PREFECT_", "MLFLOW_", "KGQA_", "PYTHON", "VIRTUAL_ENV", "CONDA")
    variables = {key: value for key, value in os.environ.items() if not key.startswith(left_out)}
    variables["PATH"] = os.pathsep.join(part for part in os.environ["PATH"].split(os.pathsep) if ".venv" not in part)
    return variables | {
        "MLFLOW_TRACKING_URI": uri, "MLFLOW_EXPERIMENT_NAME": "kgqa", "MLFLOW_DISABLE_TELEMETRY": "true",
    }  # fmt: skip


def install(work: Path, requirements: Path, env: dict[str, str]) -> tuple[Path, dict[str, Any]]:
    """The folder of the programs of a new virtual environment with a model's requirements, and what it took."""
    venv, began = work / "venv", time.perf_counter()
    shutil.rmtree(venv, ignore_errors=True)
    base = getattr(sys, "_base_executable", sys.executable)
    subprocess.run([base, "-m", "venv", str(venv)], check=True, env=env, cwd=work)
    pip = [str(venv / "bin" / "python"), "-m", "pip"]
    subprocess.run([*pip, "install", "--quiet", "-r", str(requirements)], check=True, env=env, cwd=work)
    listed = subprocess.run([*pip, "list", "--format", "json"], check=True, env=env, cwd=work, capture_output=True)
    packages = {one["name"].lower() for one in json.loads(listed.stdout)}
    assert "kgqa" not in packages
    size = sum(file.stat().st_size for file in venv.rglob("*") if file.is_file() and not file.is_symlink())
    return venv / "bin", {
        "python": ".".join(map(str, sys.version_info[:3])), "packages": len(packages),
        "install_seconds": round(time.perf_counter() - began), "gb": round(size / 1e9, 1),
    }  # fmt: skip


def load(programs: Path, model: str, questions: Sequence[str], env: dict[str, str], folder: Path) -> dict[str, Any]:
    """What a process that loads the model prints."""
    (folder / "load.py").write_text(LOAD, encoding="utf-8")
    words = [str(programs / "python"), "load.py", model, json.dumps(questions)]
    done = subprocess.run(words, env=env, cwd=folder, capture_output=True, text=True, timeout=1200)
    if done.returncode:
        raise SystemExit(done.stderr[-5000:])
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def serve(programs: Path, model: str, questions: Sequence[str], env: dict[str, str], folder: Path) -> dict[str, Any]:
    """What `mlflow models serve` answers, as (status, reply), and after how long it did."""
    with served_model([programs / "mlflow"], model, env, folder, starts=600, timeout=300) as server:
        replies, seconds = [], []
        for question in questions:
            began = time.perf_counter()
            replies.append(server.post({"input": [{"role": "user", "content": question}]}))
            seconds.append(round(time.perf_counter() - began, 2))
        topics = {"input": [{"role": "user", "content": "Who?"}], "custom_inputs": {"topics": ["Nobody"]}}
        return {
            "ready_seconds": round(server.seconds, 1), "seconds": seconds, "replies": replies,
            "refused": server.post(topics),
        }  # fmt: skip


def _text(reply: Any) -> str:
    return str(reply["output"][0]["content"][0]["text"])


def main() -> None:
    """Makes the environment, asks there, and writes the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--home", type=Path)
    parser.add_argument("--question", nargs="+", default=list(QUESTIONS))
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--json", type=Path, default=RESULTS / "fresh_model.json")
    given = parser.parse_args()
    work = given.work.resolve()
    if work.is_relative_to(ROOT):
        parser.error(f"--work {work} lies in the repository; give a folder outside of it")
    (work / "empty").mkdir(parents=True, exist_ok=True)
    home = Home((given.home or make_home(work)).resolve()).look()
    [(champion, run)] = current_champions(home.root).items()
    uri, model = tracking_uri(home), f"models:/{model_name(champion)}@champion"
    mlflow.set_tracking_uri(uri)
    shutil.rmtree(work / "model", ignore_errors=True)
    folder = Path(mlflow.artifacts.download_artifacts(model, dst_path=str(work / "model")))
    lines = (folder / "requirements.txt").read_text(encoding="utf-8").splitlines()
    assert lines and all("==" in line and "/" not in line for line in lines), lines
    files = [file for file in (folder / "code").rglob("*") if file.is_file()]
    env = fresh_environment(uri)
    try:
        programs, environment = install(work, folder / "requirements.txt", env)
        loaded = load(programs, model, given.question, env, work / "empty")
        served = serve(programs, model, given.question, env, work / "empty")
    finally:
        if not given.keep:
            shutil.rmtree(work / "venv", ignore_errors=True)
    found = {
        "conditions": conditions(SEED),
        "model": {
            "name": model, "requirements": len(lines), "code_files": len(files),
            "code_mb": round(sum(file.stat().st_size for file in files) / 1e6, 1),
        },
        "environment": environment,
        "checks": {
            "kgqa_is_not_installed": loaded["kgqa"] is None,
            "code_is_the_models": all(Path(one).name == "code" for one in loaded["code"]),
            "no_code_of_the_checkout": not any(Path(one).is_relative_to(ROOT) for one in loaded["code"]),
            "no_pythonpath": loaded["pythonpath"] is None,
            "python_of_the_environment": Path(loaded["prefix"]) == work / "venv",
            "the_champion_answered": all(one["custom_outputs"]["run"] == run for one in loaded["replies"]),
            "served_says_what_loaded_says": [_text(one) for one in loaded["replies"]]
            == [_text(one) for status, one in served["replies"] if status == 200],
        },
        "loaded": {
            "load_seconds": loaded["load_seconds"],
            "questions": [
                {"question": question, "seconds": seconds, "text": _text(reply)}
                for question, seconds, reply in zip(
                    given.question, loaded["seconds"], loaded["replies"], strict=True
                )
            ],
        },
        "served": {
            "ready_seconds": served["ready_seconds"],
            "questions": [
                {"question": question, "seconds": seconds, "status": status, "text": _text(reply)}
                for question, seconds, (status, reply) in zip(
                    given.question, served["seconds"], served["replies"], strict=True
                )
            ],
        },
        "refused": {"status": served["refused"][0], "message": " ".join(served["refused"][1]["message"].split())},
    }  # fmt: skip
    results_file.write(given.json, found, FIELDS)
    print(json.dumps(found, indent=1, ensure_ascii=False))
    if not all(found["checks"].values()):
        raise SystemExit("a check failed")


if __name__ == "__main__":
    main()
