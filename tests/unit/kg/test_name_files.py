"""Files of names: key, name and perhaps a language."""

from __future__ import annotations

import pytest

from kgqa_core.kg.formats.names import ALIAS, DESCRIPTION, LABEL, STRING, role_in_file_name
from tests.support.reading import read_text


@pytest.mark.parametrize(
    ("name", "predicate", "language"),
    [
        ("labels.en.tsv", LABEL, "en"),
        ("labels_en_pool.tsv.gz", LABEL, "en"),
        ("labels.zh-cn.tsv", LABEL, "zh-cn"),
        ("aliases.pt-br.tsv", ALIAS, "pt-br"),
        ("descriptions.de.tsv.bz2", DESCRIPTION, "de"),
        ("relation2text.txt", LABEL, ""),
        ("names.tsv", LABEL, ""),
        ("is.it.tsv", LABEL, "it"),
    ],
)
def test_the_name_of_a_file_says_language_and_kind(name, predicate, language):
    assert role_in_file_name(name) == (predicate, language)


def test_two_columns_are_keys_and_names(tmp_path):
    found = read_text(tmp_path, "Q1\tthe universe\r\nP31\tinstance of\n\n# note\n", "labels.en.tsv")
    assert found.format == "names" and found.ignored == 2 and not found.rejects
    assert found.rows("subject", "predicate", "object", "kind", "datatype") == [
        ("Q1", LABEL, "the universe", 1, "@en"),
        ("P31", LABEL, "instance of", 1, "@en"),
    ]
    bare = read_text(tmp_path, "0\troster. team\n", "relation2text.txt")
    assert bare.rows("subject", "object", "datatype") == [("0", "roster. team", STRING)]


def test_a_third_column_is_the_language_and_goes_before_that_of_the_file(tmp_path):
    found = read_text(tmp_path, "Q1\tunivers\tFR\nQ1\tuniverse\t\nQ1\t宇宙\tzh-Hans\n", "labels.en.tsv")
    assert found.rows("object", "datatype") == [("univers", "@fr"), ("universe", "@en"), ("宇宙", "@zh-hans")]
    assert read_text(tmp_path, "Q1\tunivers\tfr\n", "unknown.tsv").format == "delimited"
    assert read_text(tmp_path, "Q1\tunivers\tfr\n", "unknown.tsv", format="names").rows("datatype") == [("@fr",)]


def test_bad_rows_are_rejected_and_a_header_is_ignored(tmp_path):
    text = "id\tlabel\nQ1\ta\tb c\nQ1\nQ1\t\nQ1\ta\tb\tc\nQ1\ta\0\n\tx\nQ2\tok\n"
    found = read_text(tmp_path, text, "labels.tsv", format="names")
    assert found.rows("subject", "object") == [("Q2", "ok")] and found.ignored == 1
    assert [(line, reason) for line, reason, _ in found.rejects] == [
        (2, "'b c' is no language"),
        (3, "1 field(s) instead of key, name and perhaps language"),
        (4, "an empty field"),
        (5, "4 field(s) instead of key, name and perhaps language"),
        (6, "a NUL or a carriage return within the line"),
        (7, "an empty field"),
    ]
