"""ZJQA, Chinese questions over a small graph of sport and culture in Zhejiang (Wu et al. 2023, the RRA paper).

A line of `data/{train,valid,test}.txt` is `question<TAB>topic<TAB>relations<TAB>answers<TAB>hops`, where relations and
answers are separated by `|` and every relation is followed forward.  The graph is `indexes/triple.txt`.
"""

from __future__ import annotations

from msgspec import Struct

from kgqa_core.datasets.files.jsonl import RawQuestion
from kgqa_core.datasets.published.base import DatasetSpec, PublishedFiles, RowSource, folder_files
from kgqa_core.datasets.published.rows import tabbed_rows


class ZjqaQuestion(Struct, frozen=True):
    """A line of ZJQA."""

    line: int
    question: str
    topic: str
    relations: str
    answers: str
    hops: str


def raw_question(row: ZjqaQuestion, source: RowSource) -> RawQuestion:
    """A line as a raw question.  Raises ValueError."""
    if not row.hops.isdigit():
        raise ValueError(f"the number of hops must be last, but it is {row.hops!r}")
    hops = int(row.hops)
    return {
        "id": f"zjqa-{source.split}-{row.line:05d}" if source.split else f"zjqa-{row.line:05d}",
        "question": row.question,
        "topic_entities": [row.topic],
        "answers": row.answers.split("|"),
        "answer_type": "entities",
        "relation_path": row.relations.split("|"),
        "complexity": "generic" if hops == 1 else "multi-hop",
        "hops": hops,
    }


FILES = PublishedFiles(
    "ZJQA",
    folder_files("ZJQA", {"train": ("train.txt",), "dev": ("valid.txt",), "test": ("test.txt",)}),
    tabbed_rows("question", "topic", "relations", "answers", "hops"),
    ZjqaQuestion,
    raw_question,
    strict=True,
)

ZJQA = DatasetSpec(
    "ZJQA",
    "Chinese, one and two hops, sport and culture of Zhejiang",
    "its own, 11,256 triples",
    "20,491",
    "github: wuyike2000/Retrieve-Rewrite-Answer",
    "none stated",
    ("zjqa/data/*.txt", "data/valid.txt"),
    source="zjqa",
    loader=FILES.loader(),
    language="zh",
)
