"""SimpleQuestions over Freebase: one fact a question (Bordes et al. 2015).

A line of `annotated_fb_data_{train,valid,test}.txt` is `subject<TAB>relation<TAB>object<TAB>question`, the first three
as `www.freebase.com/m/04whkz5` and `www.freebase.com/book/written_work/subjects`; they become `m.04whkz5` and
`book.written_work.subjects`, the keys of the Freebase dump.  The annotation names one object where the graph often
holds many: as with Wikidata, everything that the relation leads to is gold, the annotated object first.
"""

from __future__ import annotations

import re

from kgqa_core.datasets.files.jsonl import RawQuestion
from kgqa_core.datasets.published.base import DatasetSpec, PublishedFiles, RowSource, folder_files
from kgqa_core.datasets.published.documents import FileHead
from kgqa_core.datasets.published.rows import tabbed_rows
from kgqa_core.datasets.published.simplequestions import SimpleQuestion, complete, fact_question

_SPACE = "www.freebase.com/"
_NAME = re.compile(r"[\w.-]+(/[\w.-]+)*")


def freebase_key(text: str) -> str:
    """`m.04whkz5` for `www.freebase.com/m/04whkz5`, and so for relations.  Raises ValueError for anything else."""
    name = text.removeprefix(_SPACE).strip("/")
    if not text.startswith(_SPACE) or not _NAME.fullmatch(name):
        raise ValueError(f"{text!r} is not {_SPACE} and a name of Freebase")
    return name.replace("/", ".")


def raw_question(row: SimpleQuestion, source: RowSource) -> RawQuestion:
    """A line as a raw question.  Raises ValueError."""
    topic, relation, answer = map(freebase_key, (row.topic, row.relation, row.object))
    return fact_question(f"sqf-{row.line:06d}", row.question, topic, relation, answer)


def _recognise(head: FileHead) -> bool:
    return (
        head.shape == "table"
        and len(head.columns) == 4
        and all(column.startswith(_SPACE) for column in head.columns[:3])
    )


SIMPLEQUESTIONS_FREEBASE = DatasetSpec(
    "SimpleQuestions",
    "one fact each, asked by people about a fact that they were shown",
    "Freebase (FB2M, FB5M)",
    "108,442",
    "research.facebook.com: SimpleQuestions v2",
    "CC BY 3.0",
    ("SimpleQuestions_v2/annotated_fb_data_*.txt", "simplequestions/annotated_fb_data_*.txt"),
    source="simplequestions_freebase",
    loader=PublishedFiles(
        "SimpleQuestions",
        folder_files(
            "SimpleQuestions",
            {
                "train": ("annotated_fb_data_train.txt",),
                "dev": ("annotated_fb_data_valid.txt",),
                "test": ("annotated_fb_data_test.txt",),
            },
        ),
        tabbed_rows("topic", "relation", "object", "question"),
        SimpleQuestion,
        raw_question,
        prefixed=True,
    ).loader(complete),
    recognise=_recognise,
    fields="lines of subject, relation, object as www.freebase.com/…, and question",
)
