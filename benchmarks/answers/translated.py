"""Questions in German, French, Spanish and Chinese, answered with the extra `languages`, beside the same in English.

    python -m benchmarks.answers.translated [--home DIR] [--data DIR] [--half 0|1] [--out FILE] [--show]

Sets: 50 questions of benchmarks/people/dev over Atlas in German, French and Chinese (benchmarks/people/translated); the
56 of Mintaka in benchmarks/people/quiz_dev.tsv over `wikidata_mini` in its own German, French and Spanish, which are
read from the shared data; the case 37 beside them.  Figures, as JSON: of each set and language the exact answers and
declines, of the quiz also the questions of which a gold answer is named, and the wrong answers that are given with a
confidence above 0.8.  The odd questions of the first set (`second_half`) were not answered before the words were
written, though they were read.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import results_file
from benchmarks.answers import quiz
from benchmarks.answers.people import PEOPLE, SEED, SURE, is_exact, share
from benchmarks.conditions import DATA, ROOT, conditions
from benchmarks.results_file import CONDITIONS
from benchmarks.tables import table
from kgqa_core.answering.reply import Answer
from kgqa_core.system import System

FIELDS = (*CONDITIONS, "benchmark", "people/*/*/...", "quiz/*/...", "case/...")
"""What the result file holds (benchmarks/results_file.py)."""

ATLAS = ROOT / "kgqa_core/datasets/published/atlas/data/atlas.nt.gz"
LANGUAGES = {"en": "English", "de": "German", "fr": "French", "es": "Spanish", "zh": "Chinese"}
HALVES = ("first_half", "second_half")

Rows = list[dict[str, Any]]


def people(code: str) -> Rows:
    """The questions over Atlas in a language, in one order for all."""
    rows = _lines(PEOPLE / "translated" / ("de" if code == "en" else code) / "atlas.jsonl")
    if code != "en":
        return rows
    own = {row["id"].rpartition("-")[2]: row for row in _lines(PEOPLE / "dev" / "atlas.jsonl")}
    return [own[row["id"].rpartition("-")[2]] for row in rows]


def mintaka(data: Path, code: str) -> Rows:
    """The quiz questions of Mintaka in a language."""
    read = json.loads((data / "mintaka" / "mintaka_dev.json").read_text(encoding="utf-8"))
    texts = {row["question"]: row["question"] if code == "en" else row["translations"][code] for row in read}
    rows = [row for row in quiz.rows(data) if row["set"] == quiz.MINTAKA]
    return [row | {"question": texts[row["question"]]} for row in rows]


def _lines(path: Path) -> Rows:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def figures(rows: Rows, replies: list[Answer]) -> dict[str, Any]:
    """Exact answers, those declined, and those that are wrong and given with a high confidence."""
    given = [reply.answer is not None for reply in replies]
    right = [
        is_exact(row, reply) if row.get("answerable", True) else not answered
        for row, reply, answered in zip(rows, replies, given, strict=True)
    ]
    sure = [(reply.confidence or 0) > SURE for reply in replies]
    wrong = [answered and high and not own for answered, high, own in zip(given, sure, right, strict=True)]
    return {"exact": share(right), "declined": share([not one for one in given]), f"wrong_above_{SURE}": share(wrong)}


def answered(result: dict[str, Any]) -> str:
    """The table of translated questions."""
    rows = []
    for code, halves in result["people"].items():
        own = halves["all"]
        parts = [f"{halves[half]['exact']['share']:.2f}" for half in HALVES]
        rows.append([LANGUAGES[code], "people's, Atlas", own["exact"]["n"], f"{own['exact']['share']:.2f}", *parts, "",
                     f"{own['declined']['share']:.2f}", f"{own['wrong_above_0.8']['share']:.2f}"])  # fmt: skip
    for code, own in result["quiz"].items():
        rows.append([LANGUAGES[code], "quiz, wikidata_mini", own["exact"]["n"], f"{own['exact']['share']:.2f}", "", "",
                     f"{own['named']['share']:.2f}", f"{own['declined']['share']:.2f}",
                     f"{own['wrong_above_0.8']['share']:.2f}"])  # fmt: skip
    own = result["case"]
    rows.append(["three", "case 37", own["exact"]["n"], f"{own['exact']['share']:.2f}", "", "", "",
                 f"{own['declined']['share']:.2f}", f"{own['wrong_above_0.8']['share']:.2f}"])  # fmt: skip
    head = ["language", "questions", "number", "exact", "first half", "second half", "gold named", "declined"]
    return table([*head, "wrong above 0.8"], rows)


def main() -> None:
    """Reads the command line, answers, scores and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, default=Path(tempfile.gettempdir()) / "kgqa-translated")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--half", type=int, choices=(0, 1))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()

    def ask(system: System, rows: Rows) -> list[Answer]:
        replies = [system.ask(row["question"]) for row in rows]
        for row, reply in zip(rows, replies, strict=True) if given.show else ():
            print(
                "|".join(map(str, (row["question"], reply.understood, row["answers"], reply.answer or reply.decline)))
            )
        return replies

    made: dict[str, Any] = {"benchmark": "translated", "conditions": conditions(SEED), "people": {}, "quiz": {}}
    system = System.from_graph(ATLAS, home=given.home)
    for code in ("en", "de", "fr", "zh"):
        rows = people(code)
        chosen = [n for n in range(len(rows)) if given.half in (None, n % 2)]
        replies = dict(zip(chosen, ask(system, [rows[n] for n in chosen]), strict=True))
        parts = {"all": chosen} | {half: [n for n in chosen if n % 2 == i] for i, half in enumerate(HALVES)}
        made["people"][code] = {
            name: figures([rows[n] for n in own], [replies[n] for n in own]) for name, own in parts.items() if own
        }
    mini = given.data / "wikidata_mini"
    system = System.from_graph(
        *(mini / name for name in ("triples.tsv", "labels.en.tsv", "qualifiers.tsv")), home=given.home
    )
    for code in ("en", "de", "fr", "es"):
        rows = mintaka(given.data, code)
        replies = ask(system, rows)
        made["quiz"][code] = figures(rows, replies) | {"named": quiz.figures(rows, replies)["named"]}
    case = given.data.parent / "cases" / "37-question-language"
    rows = [{"type": None, **row} for row in _lines(case / "questions.jsonl")]
    made["case"] = figures(rows, ask(System.from_graph(case / "firm.ttl", home=given.home), rows))
    if given.out is not None:
        results_file.write(given.out, made, FIELDS)
    print(json.dumps(made, indent=1))


if __name__ == "__main__":
    main()
