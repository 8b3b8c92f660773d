"""Graph, DKG and a draw of the questions of the bundled graph Atlas."""

from __future__ import annotations

import random
from pathlib import Path

from kgqa_core.config import KgOptions, QuestionsOptions
from kgqa_core.datasets.load import load
from kgqa_core.datasets.question import read_questions, write_questions
from kgqa_core.dkg.export import export
from kgqa_core.kg.build import build


def make_atlas(folder: Path, train: int, test: int) -> Path:
    """`folder/{kg,dkg,questions}` with so many questions for training and test."""
    for part in ("kg", "dkg", "all", "questions", "work"):
        (folder / part).mkdir()
    build(folder / "kg", options=KgOptions(files=("bundled:atlas",)), work=folder / "work")
    export(folder / "dkg", kg=folder / "kg")
    load(folder / "all", kg=folder / "kg", options=QuestionsOptions(source="atlas"), seed=7)
    everything = read_questions(folder / "all")
    draw = random.Random(3)
    chosen = draw.sample([question for question in everything if question.split == "train"], train)
    chosen += draw.sample([question for question in everything if question.split == "test"], test)
    write_questions(folder / "questions", chosen)
    return folder
