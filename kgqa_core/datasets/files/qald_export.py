"""Question sets and answers as QALD JSON, in which QALD's evaluation (GERBIL) reads gold and predicted answers.

An entity is written by its IRI (`Q42` of Wikidata, `m.02mjmr` of Freebase, whole IRIs as they are), everything else as
a literal.  Such a file is read back by `published.qald` with the same ids, texts, queries and answers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kgqa_core.datasets.files.answer_files import nodes_named, read_answer_file
from kgqa_core.datasets.files.fields import read_list, read_literal
from kgqa_core.datasets.files.link import DATE, NUMBER
from kgqa_core.kg.store import KgStore
from kgqa_core.kg.vocabulary import FREEBASE, WIKIDATA_ENTITY, XSD

VARIABLE = "x"
"""Name of the one variable of all results."""

_TRUTHS = {"yes": True, "no": False}
_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/?/?[^\s<>\"{}|\\^`]+")


def qald_document(
    rows: Sequence[Mapping[str, Any]],
    *,
    name: str,
    language: str = "en",
    answers: Mapping[str, Sequence[str]] | None = None,
    keys: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Canonical raw questions as QALD JSON, with their gold answers or with `answers`.

    name: of the data set.  language: of questions that name none.  answers: question id → predicted answers; a question
    without any gets an empty result.  keys: predicted name → key of the entity that it means.
    """
    questions = []
    for row in rows:
        given = list(row["answers"]) if answers is None else list(answers.get(row["id"], ()))
        questions.append(
            {
                "id": row["id"],
                "question": [{"language": row["language"] or language, "string": row["question"]}],
                "query": {"sparql": row.get("sparql", "")},
                "answers": [_results(given, row["answer_type"], keys or {})],
            }
        )
    return {"dataset": {"id": name}, "questions": questions}


def iri_of_key(key: str) -> str | None:
    """The IRI of an entity's key; None where the key is a name.

    >>> iri_of_key("Q42")
    'http://www.wikidata.org/entity/Q42'
    """
    if re.fullmatch(r"[QP][1-9]\d*", key):
        return WIKIDATA_ENTITY + key
    if re.fullmatch(r"[mg]\.[0-9a-z_]+", key):
        return FREEBASE + key
    return key if "://" in key and _IRI.fullmatch(key) else None


def read_answer_lists(path: Path) -> dict[str, list[str]]:
    """Question id → predicted answers, of the file that `kgqa answer` writes, or of one with id and prediction.

    `answers` counts first, a list; then `prediction`, `output` or `answer`, a text or a list.  Raises
    QuestionFileError, which names file and line.
    """
    return read_answer_file(path, _texts)


def _texts(key: str, value: Mapping[str, Any], name: str) -> list[str]:
    return [read_literal(name, item) for item in read_list(value, name, required=False) if item != ""]


def keys_of_names(texts: Sequence[str], store: KgStore) -> dict[str, str]:
    """Name → key of the entity that it means in a graph, of several the best known; names of none are left out."""
    entities = {text: [node.key for node in nodes if node.entity] for text, nodes in nodes_named(texts, store).items()}
    return {text: keys[0] for text, keys in entities.items() if keys}


def _results(texts: Sequence[str], kind: str | None, keys: Mapping[str, str]) -> dict[str, Any]:
    """Results of a query in SPARQL's JSON."""
    folded = [text.casefold().strip(" .") for text in texts]
    if kind in ("yes/no", None) and len(folded) == 1 and folded[0] in _TRUTHS:
        return {"head": {}, "boolean": _TRUTHS[folded[0]]}
    if kind in ("entities", None):
        texts = list(dict.fromkeys(keys.get(text, text) for text in texts))
    bindings = [{VARIABLE: _term(text, kind)} for text in texts]
    return {"head": {"vars": [VARIABLE]}, "results": {"bindings": bindings}}


def _term(text: str, kind: str | None) -> dict[str, str]:
    iri = iri_of_key(text) if kind not in ("number", "date", "yes/no") else None
    if iri is not None:
        return {"type": "uri", "value": iri}
    if kind == "date" and re.fullmatch(r"[+-]?\d{4,}", text):
        return {"type": "literal", "datatype": XSD + "gYear", "value": text}
    if kind != "text" and NUMBER.fullmatch(text):
        plain = text.replace(",", "")
        whole = re.fullmatch(r"[+-]?\d+", plain) is not None
        exact = "integer" if whole else "double" if "e" in plain.casefold() else "decimal"
        return {"type": "literal", "datatype": XSD + exact, "value": plain}
    if kind != "text" and DATE.fullmatch(text):
        form = "dateTime" if "T" in text else "date" if text.lstrip("+-").count("-") == 2 else "gYearMonth"
        return {"type": "literal", "datatype": XSD + form, "value": text}
    return {"type": "literal", "value": text}
