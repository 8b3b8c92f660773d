"""A file of a Freebase benchmark that is given as a question file is recognised by its content and read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from kgqa_core.config import QuestionsOptions
from kgqa_core.datasets.load import read_raw
from kgqa_core.datasets.published.registry import source_of
from kgqa_core.errors import QuestionFileError
from tests.unit.datasets.published import test_cwq, test_grailqa, test_grailqability, test_webqsp, test_webquestions

ROWS: dict[str, Any] = {
    "grailqa": [test_grailqa.question(1)],
    "grailqability": [test_grailqability.question(1)],
    "cwq": [test_cwq.question("a")],
    "webquestions": [test_webquestions.question("ann", "(list (description B))")],
    "webqsp": {"Questions": [test_webqsp.parsed("WebQTrn-0")]},
}


@pytest.mark.parametrize("source", ROWS)
@pytest.mark.parametrize("packed", [False, True])
def test_a_file_is_recognised_and_read_without_a_split(tmp_path: Path, source: str, packed: bool) -> None:
    data = json.dumps(ROWS[source]).encode()
    path = tmp_path / ("q.json.gz" if packed else "q.json")
    path.write_bytes(gzip.compress(data) if packed else data)
    assert source_of(path) == source
    (row,) = read_raw(QuestionsOptions(path=str(path)), 7)
    assert (row["split"], bool(row["answers"]), bool(row["topic_entities"])) == (None, True, True)


def test_a_strange_list_is_refused_in_one_line_that_names_what_is_known(tmp_path: Path) -> None:
    path = tmp_path / "q.json"
    path.write_text('[{"a": 1}]', encoding="utf-8")
    with pytest.raises(QuestionFileError, match=r"GrailQA \(a list with qid") as caught:
        source_of(path)
    assert "\n" not in str(caught.value)
