"""`kgqa run --profile grailqability`: parsers trained on the published format, and scored alike by `kgqa evaluate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import kgqa
from tests.unit.datasets.published.test_grailqability import BOB, question, unanswerable

FREEBASE = "http://rdf.freebase.com/ns/"
FILMS = 30


def directed(film: int) -> str:
    return f"(JOIN film.director.film m.0f{film})"


def written(folder: Path) -> list[str]:
    """A graph of films and questions about who directed them, every fifth of which the graph has no film for."""
    lines, rows = [], []
    for n in range(FILMS):
        director = [{**BOB[0], "answer_argument": f"m.0d{n}"}]
        text = {"question": f"who was the director of movie number {n:02} north?"}
        if n % 5 == 0:
            rows.append(unanswerable(n, ["E"], Organswer=director, Orgs_expression=directed(n), **text))
            continue
        rows.append(question(n, answer=director, s_expression=directed(n), **text))
        lines += [
            f"<{FREEBASE}m.0d{n}> <{FREEBASE}film.director.film> <{FREEBASE}m.0f{n}> .",
            f'<{FREEBASE}m.0f{n}> <{FREEBASE}type.object.name> "movie number {n:02} north"@en .',
            f'<{FREEBASE}m.0d{n}> <{FREEBASE}type.object.name> "Director {n}"@en .',
        ]
    folder.mkdir()
    for split, some in (("train", rows[:16]), ("dev", rows[16:22]), ("test", rows[22:])):
        path = folder / f"GrailQAbility_v1.0_{split}_a_na_reference.json"
        path.write_text(json.dumps(some), encoding="utf-8")
    graph = folder.with_suffix(".nt")
    graph.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return [
        f"kg.files=[{graph}]", f"questions.path={folder}", "answerability.ontology=null",
        "answerability.parsers=[decode]", "answerability.training=[A+U]", "parsing.decode.epochs=2",
        "parsing.decode.retriever_epochs=1", "parsing.decode.width=32", "parsing.decode.encoder=scratch",
    ]  # fmt: skip


@pytest.mark.slow
def test_its_predictions_score_the_same_when_they_are_evaluated(tmp_path: Path) -> None:
    settings = [word for setting in written(tmp_path / "set") for word in ("--set", setting)]
    done = kgqa("run", "--profile", "grailqability", *settings, "--home", tmp_path / "home", "--json")
    assert done.code == 0, done.err[-3000:]
    systems: dict[str, Any] = {
        "T" if system["thresholds"] and "form" in system["thresholds"] else "": system
        for system in done.json["systems"]
        if not (system["thresholds"] and "nothing" in system["thresholds"])
    }
    assert systems.keys() == {"", "T"}
    assert "Table 3" in done.err and Path(done.json["report"]).is_file()
    for rule, system in systems.items():
        file = Path(done.json["predictions"]) / f"decode-A+U{'-' * bool(rule)}{rule}.json"
        scored = kgqa(
            "evaluate", "--benchmark", "grailqability", "--data", tmp_path / "set", "--predictions", file, "--json"
        )
        assert scored.code == 0, scored.err
        rows = {row["group"]: row for row in scored.json["scores"]}
        assert rows["all"]["questions"] == 8 and rows["U"]["questions"] == 1
        for group, cells in system["scores"]["test"].items():
            for metric, cell in cells.items():
                assert rows[group][metric] == pytest.approx(100 * cell["value"], abs=0.01), (rule, group, metric)
