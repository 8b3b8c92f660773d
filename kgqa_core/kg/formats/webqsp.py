"""The gold subgraphs of WebQSP as a graph: `WebQSP.{train,test}.json` of Yih et al. 2016.

Of each question the first parse gives triples, as Wu et al. 2023 take it: from its topic along its inferential chain to
every answer.  The entities between are not annotated; each answer gets its own, `m.0between…`, a nameless node such as
Freebase's CVTs, named by what leads to it, so that equal chains are equal triples.  Topics and answers have their names
as labels.  This graph holds what questions lead to and nothing else of Freebase: the distractors of a question are the
triples of the other questions, and its gold path over-returns only where two questions share a topic and a relation.

A question without topic, chain or answer counts as filtered; one that cannot be read is a reject, by its number.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import polars as pl

from kgqa_core.config import KgOptions
from kgqa_core.errors import KgInputError
from kgqa_core.kg.formats.api import FormatSpec
from kgqa_core.kg.formats.base import ENTITY, LITERAL, MAX_REJECT_TEXT, PLAIN, REJECTS, STATEMENTS, StatementBatch
from kgqa_core.kg.formats.source import Source
from kgqa_core.kg.vocabulary import LABEL, STRING

Row = tuple[str, str, str, int, str | None]
"""A statement: subject, predicate, object, kind, datatype."""
WITHOUT = "question without topic, chain or answer"
"""Why a question gives no triple."""


class WebQsp:
    """Reader of the annotation of WebQSP."""

    name = "webqsp"

    def sniff(self, lines: list[str], options: KgOptions) -> float:
        """1 where the first lines are a JSON object with questions and their inferential chains, else 0."""
        text = "\n".join(lines)
        return float(text.lstrip().startswith("{") and '"Questions"' in text and '"InferentialChain"' in text)

    def read(self, source: Source, options: KgOptions) -> Iterator[StatementBatch]:
        """The statements of a file.  Raises KgInputError where it is no document of WebQSP."""
        try:
            document = json.loads(b"".join(chunk.data for chunk in source.chunks()))
        except (ValueError, RecursionError) as fault:
            raise KgInputError(f"{source.path} is no JSON: {fault}; fetch WebQSP's file again") from None
        questions = document.get("Questions") if isinstance(document, dict) else None
        if not isinstance(questions, list):
            raise KgInputError(f"{source.path} has no list 'Questions'; kg.format webqsp reads WebQSP.train.json")
        rows: dict[Row, None] = {}
        rejects: list[tuple[int, str, str]] = []
        filtered: Counter[str] = Counter()
        for number, question in enumerate(questions, start=1):
            try:
                triples = subgraph(question)
            except (KeyError, TypeError, AttributeError, ValueError) as fault:
                text = json.dumps(question, ensure_ascii=False)[:MAX_REJECT_TEXT]
                rejects.append((number, f"question that cannot be read, {type(fault).__name__}: {fault}", text))
                continue
            filtered[WITHOUT] += not triples
            rows.update(dict.fromkeys(triples))
        yield StatementBatch(
            pl.DataFrame(list(rows), schema={name: STATEMENTS[name] for name in PLAIN}, orient="row"),
            pl.DataFrame(rejects, schema=REJECTS, orient="row"),
            fraction=1.0,
            filtered=+filtered,
        )


def subgraph(question: dict[str, Any]) -> list[Row]:
    """The triples and labels of a question's first parse.  Raises KeyError, TypeError, ValueError for other shapes."""
    parses = question["Parses"]
    if not parses:
        return []
    topic, chain, answers = (parses[0][name] for name in ("TopicEntityMid", "InferentialChain", "Answers"))
    if not topic or not chain or not answers:
        return []
    rows: list[Row] = []
    if name := parses[0].get("TopicEntityName"):
        rows.append((topic, LABEL, name, LITERAL, "@en"))
    for answer in answers:
        thing = str(answer["AnswerArgument"]).strip()
        is_entity = answer.get("AnswerType") == "Entity"
        start = topic
        for step, relation in enumerate(chain[:-1], start=1):
            chain_text = "\t".join((topic, *chain, thing))
            between = f"m.0between{step}{hashlib.sha256(chain_text.encode()).hexdigest()[:12]}"
            rows.append((start, relation, between, ENTITY, None))
            start = between
        rows.append((start, chain[-1], thing, ENTITY if is_entity else LITERAL, None if is_entity else STRING))
        if is_entity and (name := answer.get("EntityName")):
            rows.append((thing, LABEL, name, LITERAL, "@en"))
    if not all(isinstance(cell, str) and cell for row in rows for cell in row[:3]):
        raise ValueError("a topic, relation, answer or name that is no text")
    return rows


FORMAT = FormatSpec(WebQsp, "WebQSP's JSON: topics, inferential chains and answers as triples", specific=True)
