"""SimpleQuestions over Freebase: one fact a question (Bordes et al. 2015).

A line of `annotated_fb_data_{train,valid,test}.txt` is `subject<TAB>relation<TAB>object<TAB>question`, the first three
as `www.freebase.com/m/04whkz5` and `www.freebase.com/book/written_work/subjects`; they become `m.04whkz5` and
`book.written_work.subjects`, the keys of the Freebase dump.  The annotation names one object where the graph often
holds many: as with Wikidata, everything that the relation leads to is gold, the annotated object first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kgqa_core.datasets.files.jsonl import RawQuestion, read_lines
from kgqa_core.datasets.published.base import DatasetSpec, OfficialFiles, Reject, convert_rows
from kgqa_core.datasets.published.documents import FileHead
from kgqa_core.datasets.published.simplequestions import complete

_SPACE = "www.freebase.com/"
_NAME = re.compile(r"[\w.-]+(/[\w.-]+)*")


def freebase_key(text: str) -> str:
    """`m.04whkz5` for `www.freebase.com/m/04whkz5`, and so for relations.  Raises ValueError for anything else."""
    name = text.removeprefix(_SPACE).strip("/")
    if not text.startswith(_SPACE) or not _NAME.fullmatch(name):
        raise ValueError(f"{text!r} is not {_SPACE} and a name of Freebase")
    return name.replace("/", ".")


def read_simplequestions_freebase(path: Path, language: str = "en") -> Iterator[Mapping[str, Any] | Reject]:
    """Raw questions of a file.  Raises QuestionFileError when it cannot be read."""
    lines = ((number, line) for number, line in enumerate(read_lines(path), start=1) if line.strip())
    return convert_rows(path, ((f"line {number}", (number, line)) for number, line in lines), lambda row: _fact(*row))


def _fact(number: int, line: bytes) -> RawQuestion:
    fields = [field.strip() for field in line.decode("utf-8", errors="replace").strip("\r\n").split("\t")]
    if len(fields) != 4 or not all(fields):
        raise ValueError(f"4 fields (subject, relation, object, question) are needed, got {fields!r}")
    subject, relation, answer = (freebase_key(field) for field in fields[:3])
    return {
        "id": f"sqf-{number:06d}",
        "question": fields[3],
        "topic_entities": [subject],
        "answers": [answer],
        "answer_type": "entities",
        "relation_path": [relation],
        "complexity": "generic",
        "hops": 1,
    }


def _recognise(head: FileHead) -> bool:
    return head.shape == "table" and len(head.columns) == 4 and all(one.startswith(_SPACE) for one in head.columns[:3])


SIMPLEQUESTIONS_FREEBASE = DatasetSpec(
    "SimpleQuestions",
    "one fact each, asked by people about a fact that they were shown",
    "Freebase (FB2M, FB5M)",
    "108,442",
    "research.facebook.com: SimpleQuestions v2",
    "CC BY 3.0",
    ("SimpleQuestions_v2/annotated_fb_data_*.txt", "simplequestions/annotated_fb_data_*.txt"),
    source="simplequestions_freebase",
    loader=OfficialFiles(
        "SimpleQuestions",
        {split: (f"annotated_fb_data_{name}.txt",) for split, name in
         (("train", "train"), ("dev", "valid"), ("test", "test"))},
        read_simplequestions_freebase,
        prefixed=True,
    ).loader(complete),
    recognise=_recognise,
    fields="lines of subject, relation, object as www.freebase.com/…, and question",
)  # fmt: skip
