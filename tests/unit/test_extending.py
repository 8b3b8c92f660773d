"""The data set and the answerer of docs/extending.md, added to a copy of the library as the page says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.extending_page import copy_packages, follow, section


def run(project: Path, code: str) -> str:
    """What code prints that imports the changed library."""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=project, env={"PYTHONPATH": str(project)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


READ = """
from kgqa_core.config import QuestionsOptions
from kgqa_core.datasets.load import read_raw
from kgqa_core.datasets.published.registry import catalogue
from pathlib import Path
rows = read_raw(QuestionsOptions(source="towns", path="towns"), 7)
print([(row["id"], row["split"], row["topic_entities"], row["answers"]) for row in rows])
print([row["found"] for row in catalogue(Path()) if row["name"] == "Town quiz"])
"""


def test_a_data_set_of_two_files_is_read_and_listed(tmp_path: Path) -> None:
    copy_packages(tmp_path, "kgqa_core")
    assert len(follow(section("A data set"), tmp_path)) == 2
    (tmp_path / "towns").mkdir()
    for split in ("train", "test"):
        (tmp_path / "towns" / f"{split}.tsv").write_text("Where is Graz?\tGraz\tAustria\n", encoding="utf-8")
    questions, found = run(tmp_path, READ).splitlines()
    assert questions == "[('train-1', 'train', ['Graz'], ['Austria']), ('test-1', 'test', ['Graz'], ['Austria'])]"
    assert found == "['2 files, 0.0 MB']"


ANSWER = """
from kgqa_core.config import LlmOptions
from kgqa_core.llm.factory import load_model
from kgqa_core.llm.paid import PromptBatch, generate_cached
from kgqa_core.llm.protocol import GenerationParams
from kgqa_core.prompts import answer_prompt
prompts = [answer_prompt("Where is Graz?", text) for text in ("(Graz, located in, Austria), (Graz, twin, Pula)", None)]
outcomes = generate_cached(load_model("first-fact:tail", LlmOptions()), PromptBatch(prompts, GenerationParams()))
print([outcome.completion.text for outcome in outcomes])
"""


def test_an_answerer_of_two_files_answers_prompts(tmp_path: Path) -> None:
    copy_packages(tmp_path, "kgqa_core")
    assert len(follow(section("An answerer"), tmp_path)) == 2
    assert run(tmp_path, ANSWER) == "['Austria', 'unknown']"
