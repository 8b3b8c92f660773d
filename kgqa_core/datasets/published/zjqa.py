"""ZJQA, Chinese questions over a small graph of sport and culture in Zhejiang (Wu et al. 2023, the RRA paper).

A line of `data/{train,valid,test}.txt` is `question<TAB>topic<TAB>relations<TAB>answers<TAB>hops`, where relations and
answers are separated by `|` and every relation is followed forward.  The graph is `indexes/triple.txt`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kgqa_core.datasets.files.jsonl import RawQuestion, check_faults, read_lines
from kgqa_core.datasets.published.base import DatasetSpec, folder_loader
from kgqa_core.errors import QuestionFileError

SPLIT_FILES = {"train": "train.txt", "dev": "valid.txt", "test": "test.txt"}


def question_files(folder: Path) -> dict[str, Path]:
    """File of each split that is there.  Raises QuestionFileError when the folder is not ZJQA."""
    if not folder.is_dir():
        raise QuestionFileError(f"{folder} is not a folder; questions.path must name the folder of ZJQA")
    home = folder / "data" if (folder / "data").is_dir() else folder
    files = {split: home / name for split, name in SPLIT_FILES.items() if (home / name).is_file()}
    if not files:
        raise QuestionFileError(f"{home} holds none of {', '.join(SPLIT_FILES.values())}; is it the folder of ZJQA?")
    return files


def read_zjqa(folder: Path) -> Iterator[RawQuestion]:
    """Raw questions of the splits that are there, `valid` as dev.  Raises QuestionFileError naming file and line."""
    for split, path in question_files(folder).items():
        faults: list[str] = []
        for number, line in enumerate(read_lines(path), start=1):
            if not line.strip():
                continue
            fields = line.decode("utf-8", errors="replace").strip("\r\n").split("\t")
            if len(fields) != 5 or not fields[4].strip().isdigit():
                faults.append(f"line {number}: 5 fields with the number of hops last are needed, got {fields!r}")
                continue
            text, topic, relations, answers, hops = (field.strip() for field in fields)
            yield {
                "id": f"zjqa-{split}-{number:05d}",
                "question": text,
                "topic_entities": [topic],
                "answers": answers.split("|"),
                "answer_type": "entities",
                "relation_path": relations.split("|"),
                "split": split,
                "complexity": "generic" if int(hops) == 1 else "multi-hop",
                "hops": int(hops),
            }
        check_faults(path, faults)


ZJQA = DatasetSpec(
    "ZJQA",
    "Chinese, one and two hops, sport and culture of Zhejiang",
    "its own, 11,256 triples",
    "20,491",
    "github: wuyike2000/Retrieve-Rewrite-Answer",
    "none stated",
    ("zjqa/data/*.txt", "data/valid.txt"),
    source="zjqa",
    loader=folder_loader(question_files, read_zjqa),
    language="zh",
)
