"""Corpora are read whole: good documents are kept, whatever stands between them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from kgqa_core.config import PassagesOptions
from kgqa_core.errors import InputError
from kgqa_core.passages.corpus import Document, RejectedText, detect, find_corpus, read_corpus
from tests.support.passages import write_jsonl


def read(path: Path, **given: object) -> tuple[list[Document], list[RejectedText]]:
    options = PassagesOptions.model_validate({"corpus": str(path), **given})
    found = list(read_corpus(find_corpus(options.corpus), options))
    documents = [each for each in found if isinstance(each, Document)]
    return documents, [each for each in found if isinstance(each, RejectedText)]


def test_fields_are_read_by_the_names_that_the_options_give(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "c.jsonl", [{"docid": 7, "name": "Paris", "body": ["It is old.", "It is\nbig."]}])
    documents, rejects = read(path, fields={"id": "docid", "title": "name", "text": "body"})
    assert not rejects
    assert documents == [Document("7", "Paris", "It is old. It is big.", "c.jsonl", 1)]


def test_a_document_without_id_is_called_by_its_line(tmp_path: Path) -> None:
    documents, _ = read(write_jsonl(tmp_path / "c.jsonl", [{"text": "one"}, {"text": "two"}]))
    assert [(each.id, each.title) for each in documents] == [("c.jsonl:1", ""), ("c.jsonl:2", "")]


def test_bad_lines_are_rejects_with_their_reasons_and_the_rest_is_read(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    lines = [
        b'{"id": "a", "text": "good one"}',
        b'{"id": "b", "text": ',
        b"",
        b'["a list"]',
        b'{"id": "c", "title": "no text"}',
        b'{"id": "d", "text": "  \\u0000 \\n "}',
        b'{"id": "e", "text": 5}',
        b'{"id": ["f"], "text": "x"}',
        b'{"id": "g", "text": "bad \xff byte"}',
        b'{"id": "a", "text": "again"}',
        b'{"id": "h", "text": "half \\ud800 of a pair"}',
        b"[" * 100_000,
        b'{"id": "z", "text": "good two"}',
    ]
    path.write_bytes(b"\n".join(lines))
    documents, rejects = read(path, format="jsonl")
    assert [each.id for each in documents if each.id != "h"] == ["a", "z"]
    assert all(each.text.encode("utf-8") for each in documents), "every document can be written"
    reasons = {each.line: each.reason for each in rejects}
    assert {2, 4, 5, 6, 7, 8, 9, 10, 12} <= set(reasons) <= {2, 4, 5, 6, 7, 8, 9, 10, 11, 12}
    for line, part in ((4, "object"), (5, "'text' is missing"), (6, "empty"), (7, "no text"), (8, "no name")):
        assert part in reasons[line]
    assert "UTF-8" in reasons[9] and "'a' was there before" in reasons[10]
    assert all(len(each.text) <= 200 and "\n" not in each.text for each in rejects)


def test_a_field_that_the_options_name_must_be_there(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "c.jsonl", [{"docid": "1", "text": "x"}, {"id": "2", "text": "y"}])
    documents, rejects = read(path, fields={"id": "docid"})
    assert [each.id for each in documents] == ["1"]
    assert "'docid' is missing (it has id, text)" in rejects[0].reason
    with pytest.raises(ValidationError, match="fields"):
        PassagesOptions.model_validate({"fields": {"body": "text"}})


def test_plain_text_has_blank_lines_between_documents(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes("\ufeffFirst line.\r\nSecond line.\r\n\r\n \t\r\n\nAnother.\nIts end".encode())
    documents, rejects = read(path)
    assert not rejects
    assert [(each.id, each.text) for each in documents] == [
        ("notes.txt:1", "First line. Second line."),
        ("notes.txt:6", "Another. Its end"),
    ]


def test_kilt_pages_lose_their_title_headings_and_marks(tmp_path: Path) -> None:
    page = {
        "_id": "290", "wikipedia_id": "290", "wikipedia_title": "A",
        "text": ["A\n", "A is a letter.\n", "Section::::History.\n", "BULLET::::- It is old.\n", "It stays.\n"],
        "anchors": [{"text": "letter", "href": "Letter", "paragraph_id": 1, "start": 7, "end": 13,
                     "wikipedia_title": "Letter (alphabet)", "wikipedia_id": "58498"}],
        "categories": "ISO basic Latin letters,Vowel letters",
        "history": {"pageid": 290, "parentid": 1, "revid": 2, "pre_dump": True, "timestamp": "2019-08-01T00:00:00Z",
                    "url": "https://en.wikipedia.org/w/index.php?title=A&oldid=2"},
        "wikidata_info": {"wikidata_id": "Q9659", "wikipedia_title": "A", "description": "letter", "aliases": {}},
    }  # fmt: skip
    path = write_jsonl(tmp_path / "kilt.json", [page, {**page, "wikipedia_id": "291", "text": 5}])
    documents, rejects = read(path)
    assert documents == [Document("290", "A", "A is a letter. It is old. It stays.", "kilt.json", 1)]
    assert "list of paragraphs" in rejects[0].reason


def test_passages_of_kilt_are_called_by_their_numbers_and_not_by_their_page(tmp_path: Path) -> None:
    passage = {"_id": "290", "wikipedia_id": "290", "wikipedia_title": "A", "text": "A is a letter.", "anchors": [],
               "categories": "x", "history": {}, "sources": [{"paragraph_id": 1, "start": 0, "end": 14}],
               "section": "Section::::Abstract"}  # fmt: skip
    lines = [f"{number}\t{json.dumps({**passage, 'text': text})}" for number, text in ((1, "One."), (2, "Two."))]
    path = tmp_path / "kilt_w100.jsonl"
    path.write_text("\n".join([*lines, "3\t[]", '4\t{"text": ']), encoding="utf-8")
    documents, rejects = read(path)
    assert [(each.id, each.title, each.text) for each in documents] == [("1", "A", "One."), ("2", "A", "Two.")]
    assert [each.line for each in rejects] == [3, 4]


@pytest.mark.parametrize("head", ["", "id\ttext\ttitle\n"])
def test_tables_of_passages_are_read_with_and_without_a_head(tmp_path: Path, head: str) -> None:
    path = tmp_path / "kilt_w100_title.tsv"
    path.write_text(head + '1\t"A ""vowel"" is old."\tA\n2\tB is not.\tB\n3\tcut off\n', encoding="utf-8")
    documents, rejects = read(path, fields={"id": "docid"})
    assert [(each.id, each.title, each.text) for each in documents] == [
        ("1", "A", 'A "vowel" is old.'),
        ("2", "B", "B is not."),
    ]
    assert "three fields" in rejects[0].reason and "not 2" in rejects[0].reason


def test_a_folder_is_read_in_order_of_name_and_may_be_packed(tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    (folder / "more").mkdir(parents=True)
    write_jsonl(folder / "b.jsonl", [{"id": "2", "text": "two"}])
    (folder / "a.txt.gz").write_bytes(gzip.compress(b"one"))
    (folder / ".hidden").write_text("never")
    write_jsonl(folder / "more" / "c.jsonl", [{"id": "3", "text": "three"}, {"id": "2", "text": "two again"}])
    documents, rejects = read(folder)
    assert [each.text for each in documents] == ["one", "two", "three"]
    assert [(each.file, each.line) for each in rejects] == [("more/c.jsonl", 2)]


def test_formats_are_recognised_by_the_first_line(tmp_path: Path) -> None:
    texts = {
        "text": "Prose {with} braces",
        "tsv": "1\tA text\tA",
        "jsonl": '{"text": "x"}',
        "kilt": '{"wikipedia_title": "A", "text": ["A"]}',
    }
    for form, text in texts.items():
        path = tmp_path / form
        path.write_text(f"\n{text}\n")
        assert detect(find_corpus(str(path))[0]) == form


def test_a_corpus_that_is_not_there_is_named_with_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "wiki.jsonl").write_text("{}")
    for corpus, message in (
        (None, "passages.corpus is empty"),
        (str(tmp_path / "wikl.jsonl"), "does not exist; did you mean 'wiki.jsonl'"),
        (str(tmp_path / "no" / "where"), "does not exist; check the path"),
    ):
        with pytest.raises(InputError, match=message):
            find_corpus(corpus)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="without files"):
        find_corpus(str(tmp_path / "empty"))


def test_rejects_can_be_written_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_bytes(b'{"id": "\\u0001x", "text": "\\u202eabc\\u0007 <script>"}\n{"a\x00": "\x1b[31m"}\n')
    documents, rejects = read(path, format="jsonl")
    assert documents[0].id == "x" and "<script>" in documents[0].text and "\x07" not in documents[0].text
    assert json.dumps(rejects[0].reason) and "\x1b" not in rejects[0].text
