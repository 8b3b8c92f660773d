"""GrailQAbility's file format from end to end: the evaluation against the authors' script, and parsers in one command.

    python -m benchmarks.papers.grailqability --work DIR [--steps referee,run] [--official CLONE] [--json OUT]

referee    predictions of RnG-KBQA that the authors published, as far as they are about the 500 questions of
           GrailQAbility's test split that FUn-FuSIC published, scored by `kgqa evaluate` and by the authors' script.
           CLONE is a checkout of github.com/dair-iitd/GrailQAbility; nothing of it is here.
run        `kgqa run --profile grailqability` on two sets in GrailQAbility's format over graphs made of their own graph
           queries (benchmarks/papers/query_graph.py): `funfusic`, FUn-FuSIC's samples of GrailQAbility and
           GraphQAbility, and `grailqa`, GrailQA's sample of 1,000, whose questions are all answerable.  Its predictions
           are scored again by `kgqa evaluate`, which has to say the same.

The graph of `funfusic` has, of answerable questions, the triples of their queries with the answers of the modified
graph; of questions whose form is known but finds nothing, the same with other entities, so that their relations are
there; of all that do not miss an entity, names and types of the entities.  It is far sparser than Freebase, and train
is a draw of what its authors test on: figures are of these parsers on this graph, and compare with no published ones.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import structs

from benchmarks import results_file
from benchmarks.conditions import DATA, RESULTS, conditions
from benchmarks.papers.parsers import kgqa
from benchmarks.papers.query_graph import QueryTriple, entity_triples, triples_of, write_triples
from benchmarks.results_file import CONDITIONS
from kgqa_core.datasets.published.grailqability import AbilityRow
from kgqa_core.datasets.published.rows import read_row
from kgqa_core.papers.grailqability.report import system_label
from kgqa_core.types import SPLITS

FIELDS = (*CONDITIONS, "?referee/...", "?sets/...")
"""What the result file holds (benchmarks/results_file.py)."""
SEED = 7
FUNFUSIC = DATA / "unanswerable_funfusic"
TEST, DEV = "*_test*_250A_250U.json", "*_dev*_50A_50U.json"
SAMPLE = FUNFUSIC / "grailqa_v1.0_test_a_na_reference_250A_250U.json"
GRAILQA = DATA / "grailqa" / "tog" / "graliqa.json"
ONTOLOGY = DATA / "freebase_ontology"
PREDICTED = "Code/Evaluation/results/RnG-KBQA/train_A_U_threshold_RnG_model_test_A_U.txt"
SCRIPT = "Code/Evaluation/final_evaluation.py"
TRAIN_SHARE = 0.7
"""Share of the questions that are learnt from; of the rest a third is dev where there is no other."""
GROUPS = {
    "all": "Results overall", "A": "Results for A overall", "U": "Results for NA overall",
    "type drop": "Results for ENTITY-TYPE drop", "relation drop": "Results for REL drop",
    "entity drop, NK": "Results for ENTITY drop (NK,NA)", "entity drop, NA": "Results for ENTITY drop (K,NA)",
    "fact drop": "Results for FACT drop", "iid": "Results for IIDs (Unanswerable)",
    "zero-shot": "Results for Zero-shot (Unanswerable)", "A, iid": "Results for IIDs (Answerable)",
    "A, compositional": "Results for compositional (Answerable)", "A, zero-shot": "Results for Zero-shot (Answerable)",
}  # fmt: skip
"""Our group → the heading of the script's output."""
METRICS = ("F1(L)", "F1(R)", "EM")


def referee(official: Path, work: Path) -> dict[str, Any]:
    """What both evaluations say of each group, and whether they agree."""
    evaluation = official / SCRIPT
    none = work / "none.json"
    none.write_text("[]", encoding="utf-8")
    lists = [f"--{part}_zero_shot_{kind}_drop={none}" for part in ("partial", "complete") for kind in ("type", "rel")]
    names = ("fb_roles", "fb_types", "reverse_properties")
    done = subprocess.run(
        [sys.executable, str(evaluation), "--model", "rng", "--data", str(SAMPLE), "--predict",
         str(official / PREDICTED), *(f"--{name}={ONTOLOGY / name}" for name in names), *lists],
        stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    theirs = _of_script(done.stdout)
    ours, _ = kgqa(
        "evaluate", "--benchmark", "grailqability", "--data", str(SAMPLE), "--predictions", str(official / PREDICTED),
        "--ontology", str(ONTOLOGY), home=None,
    )  # fmt: skip
    shape, _ = kgqa(
        "evaluate", "--benchmark", "grailqability", "--data", str(SAMPLE), "--predictions", str(official / PREDICTED),
        "--rules", "paper", home=None,
    )  # fmt: skip
    own, plain = ({row["group"]: row for row in scored["scores"]} for scored in (ours, shape))
    rows = {
        group: {
            "questions": own[group]["questions"],
            **{metric: own[group][metric] for metric in METRICS},
            "script": {metric: theirs[title][metric] for metric in METRICS},
            "paper rules, shape": {metric: plain[group][metric] for metric in METRICS},
        }
        for group, title in GROUPS.items()
    }
    equal = all(row[metric] == row["script"][metric] for row in rows.values() for metric in METRICS)
    return {"groups": rows, "equal": equal, "conditions": conditions(SEED)}


def _of_script(text: str) -> dict[str, dict[str, float]]:
    """Heading → numbers of the script's output, which prints a dictionary below each."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return {
        head.strip("- "): json.loads(row.replace("'", '"'))
        for head, row in zip(lines, lines[1:], strict=False)
        if row.startswith("{")
    }


def funfusic() -> dict[str, list[dict[str, Any]]]:
    """Rows by split: a draw of the test samples is train, the rest test; the dev samples are dev."""
    rows = [row for file in sorted(FUNFUSIC.glob(TEST)) for row in json.loads(file.read_text(encoding="utf-8"))]
    dev = [row for file in sorted(FUNFUSIC.glob(DEV)) for row in json.loads(file.read_text(encoding="utf-8"))]
    train, test = _divided(rows)
    return {"train": train, "dev": dev, "test": test}


def grailqa() -> dict[str, list[dict[str, Any]]]:
    """GrailQA's sample as answerable rows, by split."""
    rows = [{**row, "qType": "A"} for row in json.loads(GRAILQA.read_text(encoding="utf-8"))]
    train, rest = _divided(rows)
    third = len(rest) // 3
    return {"train": train, "dev": rest[:third], "test": rest[third:]}


def _divided(rows: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """A seeded draw of TRAIN_SHARE of the rows, and the rest."""
    drawn = sorted(rows, key=lambda row: str(row["qid"]))
    random.Random(SEED).shuffle(drawn)
    size = round(TRAIN_SHARE * len(drawn))
    return drawn[:size], drawn[size:]


SETS = {"funfusic": funfusic, "grailqa": grailqa}


def modified_triples(row: AbilityRow) -> Iterator[QueryTriple]:
    """What the graph holds for a question."""
    if "entity" not in row.missing:
        yield from entity_triples(row)
    if row.answerable:
        yield from triples_of(row)[0] or ()
    elif row.s_expression is not None and (elsewhere := _with_other_entities(row)) is not None:
        yield from triples_of(elsewhere)[0] or ()


def _with_other_entities(row: AbilityRow) -> AbilityRow | None:
    """The question about entities that nobody asks for; None where it is about none."""
    query = row.graph_query or {"nodes": []}
    other = {node["nid"]: f"m.other_{row.id}_{node['nid']}" for node in query["nodes"] if node["node_type"] == "entity"}
    if not other:
        return None
    nodes = [{**node, "id": other.get(node["nid"], node["id"]), "friendly_name": None} for node in query["nodes"]]
    return structs.replace(row, graph_query={**query, "nodes": nodes}, answers=row.ideal_answers)


def run(name: str, parsers: str, training: str, work: Path) -> dict[str, Any]:
    """Counts and scores of a set, and whether its predictions score the same by `kgqa evaluate`."""
    folder, rows = work / name, SETS[name]()
    folder.mkdir(exist_ok=True)
    for split in SPLITS:
        path = folder / f"{name}_{split}_a_na_reference.json"
        path.write_text(json.dumps(rows[split]), encoding="utf-8")
    lines = {line for split in SPLITS for row in rows[split] for line in modified_triples(read_row(row, AbilityRow))}
    graph = work / f"{name}.nt"
    write_triples(lines, graph)
    settings = [
        f"kg.name={name}", f"kg.files=[{graph}]", f"questions.name={name}", f"questions.path={folder}",
        f"answerability.ontology={ONTOLOGY}", f"answerability.parsers=[{parsers}]",
        f"answerability.training=[{training}]",
    ]  # fmt: skip
    words = [word for setting in settings for word in ("--set", setting)]
    done, seconds = kgqa("run", "--profile", "grailqability", *words, home=work / "home")
    again = {}
    for file in sorted(Path(done["predictions"]).glob("*.json")):
        scored, _ = kgqa(
            "evaluate", "--benchmark", "grailqability", "--data", str(folder), "--predictions", str(file),
            "--ontology", str(ONTOLOGY), home=None,
        )  # fmt: skip
        again[file.stem] = {row["group"]: row for row in scored["scores"]}
    return {
        "questions": {split: len(rows[split]) for split in SPLITS}, "triples": len(lines), "seconds": seconds,
        "systems": done["systems"], "evaluated_again": again, "equal": _agree(done["systems"], again),
        "conditions": conditions(SEED),
    }  # fmt: skip


def _agree(systems: Sequence[Mapping[str, Any]], again: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether each row of a run has, rounded, the figures of its predictions."""
    for system in systems:
        rule = system["thresholds"] and ("N" if "nothing" in system["thresholds"] else "T")
        rows = again["-".join((system["parser"], system["training"], *filter(None, (rule,))))]
        for group, cells in system["scores"]["test"].items():
            if any(abs(100 * cells[metric]["value"] - rows[group][metric]) > 0.011 for metric in METRICS):
                return False
    return True


def tables(record: Mapping[str, Any]) -> str:
    """The markdown tables of a record: both evaluations, and the parsers of each set."""
    lines: list[str] = []
    if (signed := record.get("referee")) is not None:
        same = "the same figures in every row" if signed["equal"] else "**other figures**"
        lines += [
            f"`kgqa evaluate` with `--ontology`, and its switches, on RnG-KBQA's published predictions (A+U, T) of "
            f"{signed['groups']['all']['questions']} test questions; the authors' script gives {same}:",
            "",
            f"| | questions | {' | '.join(METRICS)} | {' | '.join(f'{m}, paper, shape' for m in METRICS)} |",
            "|---|" + "---:|" * (1 + 2 * len(METRICS)),
        ]
        for group in GROUPS:
            row = signed["groups"][group]
            cells = [f"{cell[metric]:.1f}" for cell in (row, row["paper rules, shape"]) for metric in METRICS]
            lines.append(f"| {group} | {row['questions']} | {' | '.join(cells)} |")
    for name, made in sorted(record.get("sets", {}).items()):
        sizes = " / ".join(str(made["questions"][split]) for split in SPLITS)
        again = "the same" if made["equal"] else "**not the same**"
        test = made["systems"][0]["scores"]["test"]
        groups = [group for group in ("all", "A", "U", "NK", "NA") if group in test]
        heads = [f"{group} {metric}" for group in groups[:3] for metric in METRICS] + [f"{g} EM" for g in groups[3:]]
        lines += [
            "",
            f"`{name}`: {sizes} questions of train, dev and test, {made['triples']:,} triples; `kgqa evaluate` says "
            f"{again} of the predictions:",
            "",
            f"| | {' | '.join(heads)} |",
            "|---|" + "---:|" * len(heads),
        ]
        for system in made["systems"]:
            scores = system["scores"]["test"]
            cells = [scores[group][metric]["value"] for group in groups[:3] for metric in METRICS]
            cells += [scores[group]["EM"]["value"] for group in groups[3:]]
            lines.append(f"| {system_label(system)} | " + " | ".join(f"{100 * cell:.1f}" for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Runs the requested steps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="folder of files, graphs and the home")
    parser.add_argument("--official", type=Path, help="checkout of the authors' repository, for the referee")
    parser.add_argument("--steps", default="referee,run")
    parser.add_argument("--sets", default="funfusic,grailqa")
    parser.add_argument("--parsers", default="rng,decode")
    parser.add_argument("--train", default="A,A+U")
    parser.add_argument("--json", type=Path, default=RESULTS / "grailqability.json")
    given = parser.parse_args()
    record: dict[str, Any] = json.loads(given.json.read_text(encoding="utf-8")) if given.json.is_file() else {}
    given.work.mkdir(parents=True, exist_ok=True)
    record["conditions"] = conditions(SEED)
    if "referee" in given.steps.split(","):
        if given.official is None:
            parser.error("--official CLONE is needed for the referee")
        record["referee"] = referee(given.official, given.work)
    for name in given.sets.split(",") if "run" in given.steps.split(",") else ():
        training = "A" if name == "grailqa" else given.train
        record.setdefault("sets", {})[name] = run(name, given.parsers, training, given.work)
    results_file.write(given.json, record, FIELDS, sort_keys=True)


if __name__ == "__main__":
    main()
