"""Names that are nothing but blanks: their triples are left out, or the key stands for them; nothing fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kgqa_core.config import KgOptions, LlmOptions, PopularityOptions, SamplingOptions, WritingOptions
from kgqa_core.kg.build import build
from kgqa_core.papers.ltgen.sample import draw
from kgqa_core.papers.ltgen.write import write
from kgqa_core.workspace import Workspace

EX, LABEL = "http://ex.org/", "http://www.w3.org/2000/01/rdf-schema#label"


def lines() -> list[str]:
    """Eight things, each with four relations to others."""
    return [
        f"<{EX}thing{i}> <{EX}relation{j}> <{EX}thing{(i + j + 1) % 8}> ." for i in range(8) for j in range(4)
    ]  # fmt: skip


def written(folder: Path, kind: str, more: list[str]) -> list[dict[str, object]]:
    """Questions by rule from these lines and more."""
    for name in ("kg", "work", "sample", kind):
        (folder / name).mkdir()
    (folder / "g.nt").write_text("\n".join([*lines(), *more, ""]), encoding="utf-8")
    build(Workspace(folder / "kg", folder / "work"), options=KgOptions(files=(str(folder / "g.nt"),)))
    sampling = SamplingOptions(levels="absolute", thresholds=(1, 2, 3, 4, 100))
    draw(Workspace(folder / "sample"), kg=folder / "kg", options=sampling, popularity=PopularityOptions(), seed=7)
    write(
        Workspace(folder / kind),
        kg=folder / "kg",
        sample=folder / "sample",
        kind=kind,
        options=WritingOptions(),
        llm=LlmOptions(),
        seed=7,
    )
    return [json.loads(line) for line in (folder / kind / "questions.jsonl").read_text("utf-8").splitlines()]


@pytest.mark.parametrize("kind", ["qa", "conv"])
@pytest.mark.parametrize("blank", ["\\u3000", "\\t\\n", "\\u00a0"], ids=["wide", "tab", "fixed"])
def test_a_blank_literal_is_in_no_question(tmp_path: Path, kind: str, blank: str) -> None:
    found = written(tmp_path, kind, [f'<{EX}thing{i}> <{EX}note> "{blank}" .' for i in range(8)])
    assert found and not any("note" in json.dumps(row["gold_triples"]) for row in found)


@pytest.mark.parametrize("kind", ["qa", "conv"])
def test_an_entity_with_a_blank_label_is_called_by_its_key(tmp_path: Path, kind: str) -> None:
    found = written(tmp_path, kind, [f'<{EX}thing{i}> <{LABEL}> "\\u3000"@en .' for i in range(8)])
    assert any("thing" in str(row["question"]) for row in found)
