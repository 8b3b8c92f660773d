"""Trainings of this checkout and of an older one, taking turns on the same inputs and seed: seconds and dev score.

    python -m benchmarks.models.training --old DIR --work DIR [--graphs atlas,small] [--trainings label_parser,rigel,…]
        [--rounds 1] [--set label_parser.steps=60 …] [--json benchmarks/results/training.json]

--old: a checkout of an older commit (`git worktree add`).  Each training runs in a process of its own, with one
thread unless OMP_NUM_THREADS says otherwise, and each checkout with its own profile.  atlas: the bundled graph with the
profile `atlas`.  small: 5,000 triples about films with 1,500 questions made from them, and nothing set; --set changes
sections of both checkouts, for a shorter run, and is recorded.  Seconds are of the training alone, imports of its
libraries included; ratios of processor seconds hold beside other work, too.  Two rounds say whether the artifact is
the same twice.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import results_file
from benchmarks.conditions import PROFILES, RESULTS, ROOT, commit_name, conditions, processor
from benchmarks.results_file import CONDITIONS
from benchmarks.tables import table
from kgqa_core.builders.questions.generate import generate
from kgqa_core.config import Profile, make_profile, parse_settings, read_profile
from kgqa_core.datasets.load import load
from kgqa_core.dkg.export import export
from kgqa_core.kg.build import build
from kgqa_core.linking.dictionary import build as build_mentions
from kgqa_core.rewriting.corpus import generate as make_corpus
from kgqa_core.store.publish import publish_folder
from kgqa_core.workspace import Workspace

FIELDS = (*CONDITIONS, "old_commit", "load", "processor", "changes/...", "graphs/...")
"""What the result file holds (benchmarks/results_file.py)."""
SEED = 7
TRAININGS = ("label_parser", "rigel", "hop_path", "rewriter")
GRAPHS = {"atlas": TRAININGS, "small": TRAININGS[:3]}
"""Trainings of each graph; nothing is rewritten where nothing is set."""
SCORES = {
    "label_parser": "right", "rigel": "Hits@1", "hop_path": "path@1", "rewriter": "minus nats a token",
}  # fmt: skip
TRIPLES, QUESTIONS = 5_000, 1_500
X, LABEL = "http://x/", "http://www.w3.org/2000/01/rdf-schema#label"
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"


def small_graph(path: Path, seed: int) -> int:
    """Writes 5,000 N-Triples about films, people, cities and countries with made-up names; returns their number."""
    chooser = random.Random(seed)
    syllables = [a + b for a in "b d f g k l m n p r s t v z".split() for b in "a e i o u ar en il".split()]
    names: set[str] = set()
    lines: list[str] = []

    def name(parts: int) -> str:
        while True:
            made = "".join(chooser.choices(syllables, k=parts)).title()
            if made not in names:
                names.add(made)
                return made

    def thing(key: str, label: str, kind: str) -> str:
        lines.append(f'<{X}{key}> <{LABEL}> "{label}"@en .')
        lines.append(f"<{X}{key}> <{TYPE}> <{X}{kind}> .")
        return key

    def fact(head: str, relation: str, tail: str) -> None:
        lines.append(f"<{X}{head}> <{X}{relation}> <{X}{tail}> .")

    def year(head: str, relation: str, first: int, last: int) -> None:
        kind = "http://www.w3.org/2001/XMLSchema#gYear"
        lines.append(f'<{X}{head}> <{X}{relation}> "{chooser.randint(first, last)}"^^<{kind}> .')

    for kind in ("film", "person", "city", "country", "genre"):
        lines.append(f'<{X}{kind}> <{LABEL}> "{kind}"@en .')
    countries = [thing(f"country{n}", name(3), "country") for n in range(20)]
    cities = [thing(f"city{n}", name(2), "city") for n in range(80)]
    genres = [thing(f"genre{n}", one, "genre") for n, one in enumerate("drama comedy western thriller opera".split())]
    for number, city in enumerate(cities):
        fact(city, "country", countries[number % len(countries)])
    for number, country in enumerate(countries):
        fact(country, "capital", cities[number])
        fact(country, "borders", countries[(number + 1) % len(countries)])
    people = [thing(f"person{n}", f"{name(2)} {name(2)}", "person") for n in range(300)]
    for person in people:
        fact(person, "place_of_birth", chooser.choice(cities))
        year(person, "year_of_birth", 1900, 1990)
    film = 0
    while len(lines) < TRIPLES:
        key = thing(f"film{film}", f"The {name(3)}", "film")
        fact(key, "directed_by", chooser.choice(people[:60]))
        for actor in chooser.sample(people, 3):
            fact(key, "starred_actor", actor)
        fact(key, "has_genre", chooser.choice(genres))
        year(key, "release_year", 1930, 2020)
        film += 1
    lines = lines[:TRIPLES]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return len(lines)


def prepare(graph: str, work: Path, trainings: Sequence[str], changes: Mapping[str, Any]) -> Path:
    """The folder of a graph's inputs, made where they are not there."""
    folder = work / graph
    folder.mkdir(parents=True, exist_ok=True)
    tree: dict[str, Any] = read_profile(PROFILES / "atlas.yaml") if graph == "atlas" else {}
    if graph == "small":
        small_graph(folder / "graph.nt", SEED)
        shares = [0.8, 0.1, 0.1]
        tree = {
            "kg": {"name": "small", "files": [str(folder / "graph.nt")]},
            "questions": {
                "name": "small", "source": "generated", "path": str(folder / "asked" / "questions.jsonl"),
                "generated": {"size": QUESTIONS, "split_shares": shares, "read_back": 0},
            },
        }  # fmt: skip
    profile = make_profile(tree)
    (folder / "graph.json").write_text(json.dumps({"profile": "atlas" if graph == "atlas" else None}), "utf-8")
    _made(folder / "kg", lambda out, own: build(Workspace(out, own), options=profile.kg))
    _made(folder / "dkg", lambda out, own: export(Workspace(out), kg=folder / "kg", options=profile.dkg))
    _made(folder / "mentions", lambda out, own: build_mentions(Workspace(out, own), kg=folder / "kg"))
    if graph == "small":
        _made(
            folder / "asked",
            lambda out, own: generate(Workspace(out), folder / "kg", profile.questions.generated, SEED),
        )
    options = profile.questions
    _made(folder / "questions", lambda out, own: load(Workspace(out), kg=folder / "kg", options=options, seed=SEED))
    if graph == "atlas":
        parser = {**profile.label_parser.model_dump(), **changes.get("label_parser", {})}
        wanted = options.generated.model_copy(
            update={"size": parser["generated"], "writer": "template", "unanswerable": parser["unanswerable"]}
        )
        _made(folder / "generated", lambda out, own: generate(Workspace(out), folder / "kg", wanted, SEED))
    if "rewriter" in trainings and "rewriter" in GRAPHS[graph]:
        _made(folder / "corpus", lambda out, own: _corpus(out, folder, profile))
    return folder


def _corpus(out: Path, folder: Path, profile: Profile) -> dict[str, Any]:
    parts = {name: folder / name for name in ("kg", "dkg", "questions")}
    return make_corpus(Workspace(out), **parts, options=profile.corpus, llm=profile.llm, seed=SEED)


def _made(folder: Path, fill: Any) -> None:
    if not folder.exists():
        publish_folder(folder.name, folder, fill)


def measure(
    root: Path, training: str, inputs: Path, out: Path, changes: Mapping[str, Any], threads: str
) -> dict[str, Any]:
    """What one training of a checkout took and reached."""
    script = ROOT / "benchmarks" / "training_run.py"
    command = [sys.executable, str(script), training, str(inputs), str(out), str(SEED), json.dumps(changes)]
    environment = {**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": threads}
    done = subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{training} of {root.name} failed:\n{done.stderr[-3000:]}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def figures(document: Mapping[str, Any]) -> str:
    """The page's table and what it was measured under."""
    rows = []
    for graph, trainings in document["graphs"].items():
        for training, sides in trainings.items():
            old, new = (_mean(sides[side]) for side in ("old", "new"))
            rows.append(
                (
                    graph, training, f"{old['processor_seconds']:.0f}", f"{new['processor_seconds']:.0f}",
                    f"**{old['processor_seconds'] / new['processor_seconds']:.1f}×**",
                    f"{old['seconds'] / new['seconds']:.1f}×", SCORES[training], f"{old['dev_score']:.4f}",
                    f"{new['dev_score']:.4f}", {True: "yes", False: "no", None: ""}[new["same"]],
                )
            )  # fmt: skip
    own = document["conditions"]
    settings = ((section, *one) for section, options in document["changes"].items() for one in options.items())
    changed = ", ".join(f"{section}.{name}={value}" for section, name, value in settings)
    head = (
        "graph", "training", "old, s", "new, s", "faster by", "by wall clock", "dev score", "old", "new", "same twice",
    )  # fmt: skip
    return (
        f"`benchmarks/models/training.py`, commit {commit_name(own['commit'])} against "
        f"{commit_name(document['old_commit'])}, {own['date']}, "
        f"seed {own['seed']}, {document['processor']}, {own['cores']} cores, {own['threads']} thread(s) each, "
        f"load {document['load']:.1f} at the start{'; set in both: ' + changed if changed else ''}. Seconds are of the "
        "processor; the machine did other work, "
        "so that those of the clock mean less.\n\n" + table(head, rows)
    )


def _mean(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Medians of the runs of a side; same: whether all wrote the same weights, None where there is one run."""
    found: dict[str, Any] = {
        name: sorted(run[name] for run in runs)[len(runs) // 2]
        for name in ("seconds", "processor_seconds", "dev_score")
    }
    return {**found, "same": len({run["digest"] for run in runs}) == 1 if len(runs) > 1 else None}


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--graphs", default="atlas,small")
    parser.add_argument("--trainings", default=",".join(TRAININGS))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE")
    parser.add_argument("--json", type=Path, default=RESULTS / "training.json")
    given = parser.parse_args(arguments)
    threads = os.environ.setdefault("OMP_NUM_THREADS", "1")
    changes, trainings = parse_settings(given.set), given.trainings.split(",")
    old = subprocess.run(
        ["git", "-C", str(given.old), "rev-parse", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    document: dict[str, Any] = {
        "conditions": conditions(SEED), "old_commit": old, "load": round(os.getloadavg()[0], 1),
        "processor": processor(), "changes": changes, "graphs": {},
    }  # fmt: skip
    for graph in given.graphs.split(","):
        inputs = prepare(graph, given.work, trainings, changes)
        for training in [one for one in trainings if one in GRAPHS[graph]]:
            sides: dict[str, list[dict[str, Any]]] = {"old": [], "new": []}
            for turn in range(given.rounds):
                for side, root in (("old", given.old.resolve()), ("new", ROOT)):
                    out = given.work / "out" / graph / training / f"{side}{turn}"
                    found = measure(root, training, inputs, out, changes.get(training, {}), threads)
                    sides[side].append(found)
                    print(graph, training, side, json.dumps(found), flush=True)
            document["graphs"].setdefault(graph, {})[training] = sides
            results_file.write(given.json, document, FIELDS)
    print(figures(document))


if __name__ == "__main__":
    main()
