"""What parts of the form search are worth: people's development questions without one part at a time.

    python -m benchmarks.answers.ablation [--only VARIANT …] [--json benchmarks/results/ablation.json]

The packaged head start answers `people/dev` over Atlas, `people/dev5` and `people/dev7` at once; VARIANTS says what of
the search is left out.  What is in the file and of the same commit is kept, so that variants may be run one by one.
Nothing is fitted again for a variant, neither the scorer nor its calibration.  KGQA_HOME is where
the graph is built.  Figures: those of benchmarks/answers/people.py.
"""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks import results_file
from benchmarks.answers.people import PEOPLE, SURE, ask, ceiling, measure, rows_of, share, system_of
from benchmarks.conditions import RESULTS, conditions
from benchmarks.results_file import CONDITIONS
from benchmarks.tables import conditions_line, interval, table
from kgqa_core.answering.reply import Answer
from kgqa_core.search import search
from kgqa_core.search.candidates import Candidate
from kgqa_core.symbolic.by_labels.parser import LabelParser
from kgqa_core.symbolic.by_labels.unread import Unread

FIELDS = (*CONDITIONS, "benchmark", "variants/*/...")
"""What the result file holds (benchmarks/results_file.py)."""
SEED = 7
GRAPHS = PEOPLE / "dev5" / "graphs"
DEV7 = {
    "league": ("dev2/graphs/league", "league.ttl"),
    "hospital": ("dev4/graphs/hospital", "wards.csv", "doctors.csv", "patients.csv", "visits.csv", "treatments.csv"),
    "housing": ("dev5/graphs/housing", "housing.xlsx"),
    "bestiary": ("dev6/graphs/bestiary", "creatures.csv", "biomes.csv"),
}
"""Folder and files of each graph of people/dev7."""


def _files(folder: str, *names: str) -> str:
    return ",".join(str(PEOPLE / folder / name) for name in names)


SETS: Mapping[str, Sequence[tuple[str, str, str]]] = {
    "people/dev, Atlas": (("dev", "atlas", "bundled:atlas"),),
    "people/dev5": tuple(
        ("dev5", path.parent.name, str(path)) for path in sorted(GRAPHS.glob("*/*")) if path.suffix != ".md"
    ),
    "people/dev7": tuple(("dev7", graph, _files(*files)) for graph, files in DEV7.items()),
}
"""The questions and their graphs, as set, graph and source."""
SHOWN = ("exact", "wrongly_declined", "declined_of_unanswerable", "wrong_above")
Patches = Sequence[contextlib.AbstractContextManager[Any]]


def _constants(**values: Any) -> Patches:
    return [mock.patch.object(search, name, value) for name, value in values.items()]


def _without_empty() -> Patches:
    make = search.FormSearch.make

    def found(*given: Any) -> list[Candidate]:
        return [one for one in make(*given) if not (one.finds_nothing or one.missing)]

    return [mock.patch.object(search.FormSearch, "make", found)]


VARIANTS: Mapping[str, Callable[[], Patches]] = {
    "whole": list,
    "two levels in place of four": lambda: _constants(LEVELS=2),
    "a beam of 8 in place of 64": lambda: [
        *_constants(BEAM=8, QUOTA=2),
        mock.patch.object(search.PlanSearch, "followed", (8, 4)),
    ],
    "words that a form explains do not count in the search": lambda: _constants(COVERAGE=0.0),
    "no word is found unread": lambda: [mock.patch.object(LabelParser, "unread", lambda *_: Unread())],
    "without empty results": _without_empty,
    "no comparison with things or averages, no only and every, no best groups": lambda: [
        mock.patch.object(search.PlanSearch, name, lambda *_: iter(()))
        for name in ("_compared_with", "_only", "_best_groups")
    ],
}
"""What is left out, by what it is called."""


@contextlib.contextmanager
def variant(name: str) -> Iterator[None]:
    """Leaves a part of the search out."""
    with contextlib.ExitStack() as stack:
        for patch in VARIANTS[name]():
            stack.enter_context(patch)
        yield


def figures(graphs: Sequence[tuple[str, str, str]]) -> dict[str, Any]:
    """Figures of a set's questions, over one graph or several, as the search is now."""
    rows, replies, seconds, ten = list[dict[str, Any]](), list[Answer](), list[float](), list[bool]()
    for name, graph, source in graphs:
        system = system_of(source)
        asked, answers, times = ask(rows_of(name, graph), system)
        rows, replies, seconds = [*rows, *asked], [*replies, *answers], [*seconds, *times]
        ten += ceiling(asked, system)
    found = measure(rows, replies, seconds)
    return {key: found[key] for key in SHOWN} | {"among_ten": share(ten), "seconds": found["seconds"]}


def ablation(found: Mapping[str, Any]) -> str:
    """The markdown table of a record."""
    head = (
        "questions", "search", "exact [95 %]", "declined wrongly", "among ten", "declined rightly", "wrong above .8",
    )  # fmt: skip
    rows = []
    for variant_name, sets in found["variants"].items():
        for name, own in sets.items():
            shares = [own[key]["share"] for key in ("wrongly_declined", "among_ten", "declined_of_unanswerable")]
            told = [f"{value:.3f}" for value in (*shares, own["wrong_above"][str(SURE)]["share"])]
            rows.append((name, variant_name, interval(own["exact"]), *told))
    ordered = sorted(rows, key=lambda row: row[0])
    return f"{table(head, ordered)}\n{conditions_line(found['conditions'])}\n"


def _known(path: Path) -> dict[str, Any]:
    """What was measured before."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {"variants": {}}


def main() -> None:
    """Reads the command line, answers, counts and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=tuple(VARIANTS), default=tuple(VARIANTS))
    parser.add_argument("--json", type=Path, default=RESULTS / "ablation.json")
    given = parser.parse_args()
    own = conditions(SEED)
    for name in given.only:
        known = _known(given.json)
        if known.get("conditions", own) != own:
            parser.error(f"{given.json} is of {known['conditions']['commit']}: delete it to measure anew")
        with variant(name):
            found = {title: figures(graphs) for title, graphs in SETS.items()}
        print(name, found, flush=True)
        measured = _known(given.json)["variants"] | {name: found}
        variants = {one: measured[one] for one in VARIANTS if one in measured}
        results_file.write(given.json, {"benchmark": "ablation", "conditions": own, "variants": variants}, FIELDS)


if __name__ == "__main__":
    main()
