"""How often the language of a question is found, over questions of the shared data, by language.

    python -m benchmarks.answers.languages [--data DIR] [--out FILE]

English: the questions of the dev and train sets that state their language or are in English throughout (Mintaka dev,
QALD-9 train, LC-QuAD 2 train, WikiWebQuestions train and dev, SimpleQuestions train, WebQSP train).  Others: Mintaka
dev and QALD-9 train.  Figures, as JSON: of each language the share found to be another one than English, and the share
found to be just that; of English the questions that were taken for another language, by their text.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import results_file
from benchmarks.conditions import DATA, conditions
from benchmarks.results_file import CONDITIONS
from benchmarks.tables import table
from kgqa_core.linking.languages import ENGLISH, language_of

FIELDS = (*CONDITIONS, "benchmark", "english/...", "others/*/*/...")
"""What the result file holds (benchmarks/results_file.py)."""

NAMES = {
    "ar": "Arabic", "de": "German", "es": "Spanish", "fa": "Persian", "fr": "French", "hi": "Hindi", "hi_IN": "Hindi",
    "it": "Italian", "ja": "Japanese", "nl": "Dutch", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian",
}  # fmt: skip


def english(data: Path) -> Iterator[str]:
    """Questions in English."""
    yield from (row["question"] for row in _read(data / "mintaka" / "mintaka_dev.json"))
    yield from (text for language, text in qald(data) if language == "en")
    for line in (data / "lcquad2_train" / "lcquad2_questions.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["split"] == "train":
            yield row["question"] or ""
    for split in ("train", "dev"):
        yield from (row["utterance"] for row in _read(data / "wikiwebquestions" / f"{split}.json"))
    simple = data / "simplequestions_wikidata" / "annotated_wd_data_train_answerable.txt"
    yield from (line.rpartition("\t")[2] for line in simple.read_text(encoding="utf-8").splitlines())
    yield from (row["RawQuestion"] for row in _read(data / "webqsp" / "WebQSP.train.json")["Questions"])


def qald(data: Path) -> Iterator[tuple[str, str]]:
    """(language, text) of the training questions of QALD-9."""
    for row in _read(data / "qald" / "qald-9-train-multilingual.json")["questions"]:
        yield from ((one["language"], one["string"]) for one in row["question"] if one.get("string"))


def mintaka(data: Path) -> Iterator[tuple[str, str]]:
    """(language, text) of the translations of Mintaka's dev split."""
    for row in _read(data / "mintaka" / "mintaka_dev.json"):
        yield from row["translations"].items()


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def figures(rows: Iterator[tuple[str, str]]) -> dict[str, dict[str, float]]:
    """Of each language its questions, the share found to be in another language than English, and in just that."""
    counts: dict[str, list[int]] = {}
    for language, text in rows:
        if language in NAMES:
            own, made = counts.setdefault(NAMES[language], [0, 0, 0]), language_of(text)
            for index, true in enumerate((True, made not in (None, ENGLISH), made == NAMES[language])):
                own[index] += true
    return {
        name: {"questions": size, "not_english": round(other / size, 4), "found": round(right / size, 4)}
        for name, (size, other, right) in sorted(counts.items())
    }


def detection(result: dict[str, Any]) -> str:
    """The table of how often a language is found."""
    rows = [
        [name, source, f"{own['questions']:,}", f"{own['not_english']:.3f}", f"{own['found']:.3f}"]
        for source, languages in result["others"].items()
        for name, own in languages.items()
    ]
    own = result["english"]
    alarms = f"{len(own['taken_for_another'])} of {own['questions']:,}"
    rows.append(["English", "six sets", f"{own['questions']:,}", f"{alarms} questions", ""])
    return table(["language", "of", "questions", "found to be not English", "found to be this one"], rows)


def main() -> None:
    """Reads the command line, measures and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    texts = [text for text in english(given.data) if text]
    taken = {text: language for text in texts if (language := language_of(text)) not in (None, ENGLISH)}
    made = {
        "benchmark": "languages",
        "conditions": conditions(0),
        "english": {"questions": len(texts), "taken_for_another": taken},
        "others": {"Mintaka": figures(mintaka(given.data)), "QALD-9": figures(qald(given.data))},
    }
    if given.out is not None:
        results_file.write(given.out, made, FIELDS)
    print(json.dumps(made, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
