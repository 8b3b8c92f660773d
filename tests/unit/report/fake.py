"""A made-up run for looking at the report; numbers are invented, names are real."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

from kgqa_core.config import Profile
from kgqa_core.report.data import Example, ExampleFact, ExampleOutput, ReportData
from kgqa_core.types import COMPLEXITY_TYPES

MODEL = "builtin"
EXPERIMENTS = {"none/none": 0.084, "random/triples": 0.171, "rigel/triples": 0.752, "oracle/triples": 0.806}
FORMATS = EXPERIMENTS | {
    "kaping/triples": 0.522,
    "hop_path/triples": 0.731,
    "rigel/template": 0.744,
    "hop_path/template": 0.722,
    "hop_path/rewritten": 0.768,
    "oracle/rewritten": 0.812,
}
"""Experiments of a run that compares forms of knowledge."""
TEXT_METRICS = {
    "exact": 0.0,
    "contains": 0.02,
    "contains_substring": 0.05,
    "hit_rra": 0.01,
    "hit_rra_substring": 0.03,
    "f1": -0.01,
}


def cell(value: float, n: int) -> dict[str, float | int]:
    value = min(0.995, max(0.0, value))
    half = 1.96 * (value * (1 - value) / n) ** 0.5
    return {
        "value": round(value, 6),
        "low": round(max(0, value - half), 6),
        "high": round(min(1, value + half), 6),
        "n": n,
    }


def fake_comparisons(experiments: dict[str, float], models: tuple[str, ...]) -> list[dict]:
    rows = []
    for model in models:
        for name, value in experiments.items():
            for base, before in experiments.items():
                if name == base or name == "none/none" or not base.endswith(("none", "triples")):
                    continue
                shift, same = round(2412 * (value - before)), 119
                pair = {"helpful": same + max(shift, 0), "harmful": same + max(-shift, 0), "n": 2412}
                groups = {"helpful": pair["helpful"] // 2, "harmful": pair["harmful"] // 2, "n": 1206}
                rows += [
                    {"experiment": f"{name}/{model}", "baseline": f"{base}/{model}", "metric": metric, "split": "test"}
                    | pair
                    | {"p": 0.62 if abs(shift) < 40 else 1.3e-9, "by_hops": {"1": groups, "2": groups}}
                    | {"by_complexity": dict.fromkeys(COMPLEXITY_TYPES[:-1], groups)}
                    for metric in ("hit_rra", "exact")
                ]
    return rows


def fake_costs(experiments: dict[str, float], models: tuple[str, ...]) -> dict:
    words = {"none": 0.0, "triples": 61.4, "template": 88.1, "rewritten": 74.25}
    found = {}
    for model in models:
        for name in experiments:
            many = words[name.split("/")[1]]
            found[f"{name}/{model}"] = {
                "questions": 2412,
                "words": many,
                "characters": many * 6.1,
                "without_knowledge": 2412 if name == "none/none" else 31,
                "prompt_tokens": 21.5 + many * 1.6,
                "completion_tokens": 3.25,
                "finish": {"stop": 2400, "length": 11, "error": 1},
            } | ({"cost_per_1000": 0.0231} if model.startswith("openai:") else {})
    return found


def fake_aggregates(models: tuple[str, ...] = (MODEL,), experiments: dict[str, float] | None = None) -> dict:
    given, experiments = experiments, experiments or EXPERIMENTS
    scores: dict = {
        "rigel/-/-": {
            "test": {
                "hits_at_1": cell(0.927, 2412),
                "hits_at_5": cell(0.951, 2412),
                "recall_of_answers": cell(0.968, 2412),
            }
        }
    }
    if given:
        paths = {"hop_accuracy": cell(0.991, 1800), "path_at_1": cell(0.962, 1790), "path_at_5": cell(0.997, 1790)}
        scores["hop_path/-/-"] = {"test": scores["rigel/-/-"]["test"] | paths}
    scores["random/-/-"] = {
        "test": {"hits_at_1": cell(0.0, 2412), "hits_at_5": cell(0.0, 2412), "recall_of_answers": cell(0.213, 2412)}
    }
    by_complexity: dict = {"rigel/-/-": {}}
    by_hops: dict = {"rigel/-/-": {str(h): {"hits_at_1": cell(0.98 - 0.06 * h, 800)} for h in (1, 2)}}
    shares = dict(zip(COMPLEXITY_TYPES, (1.15, 1.1, 0.9, 0.7, 0.6, 0.85, 0.8, 0.65, 1.05), strict=True))
    for kind in COMPLEXITY_TYPES[:-1]:
        by_complexity["rigel/-/-"][kind] = {"hits_at_1": cell(0.85 * shares[kind], 300)}
    gains: dict = {}
    for place, model in enumerate(models):
        for name, value in experiments.items():
            value = value * (1 - 0.1 * place)
            experiment = f"{name}/{model}"
            scores[experiment] = {"test": {metric: cell(value + extra, 2412) for metric, extra in TEXT_METRICS.items()}}
            by_complexity[experiment] = {
                kind: {m: cell(value * shares[kind], 300) for m in TEXT_METRICS} for kind in COMPLEXITY_TYPES[:-1]
            }
            by_complexity[experiment]["generic+multi-hop"] = {m: cell(value * 1.12, 600) for m in TEXT_METRICS}
            by_hops[experiment] = {
                str(h): {m: cell(value * (1.2 - 0.1 * h), 800) for m in TEXT_METRICS} for h in (1, 2)
            }
            if not name.startswith("none"):
                base = EXPERIMENTS["none/none"] * (1 - 0.1 * place)
                gains[experiment] = {
                    "exact": 100 * (value - base) / base,
                    "contains": -4.2 if name.startswith("random") else 640.0,
                }
    compared = {
        "comparisons": fake_comparisons(experiments, models),
        "cost": fake_costs(experiments, models),
    }
    return (compared if given else {}) | {
        "scores": scores,
        "without_leaked": {
            name: {"test": {m: cell(c["value"] - 0.004, 2355) for m, c in by["test"].items()}}
            for name, by in scores.items()
        },
        "by_complexity": by_complexity,
        "by_hops": by_hops,
        "n_unlinkable": {"train": 12, "dev": 3, "test": 7},
        "gain_over_no_knowledge": gains,
        "leakage": {"leaked": 57, "test_same_text": 57, "test_same_topic_and_path": 31, "dev_same_text": 4},
    }


def outputs(*texts: tuple[str, bool]) -> tuple[ExampleOutput, ...]:
    names = (f"{name}/{MODEL}" for name in EXPERIMENTS)
    return tuple(ExampleOutput(name, text, correct) for name, (text, correct) in zip(names, texts, strict=True))


def neighbours() -> Example:
    names = [
        "Germany",
        "Belgium",
        "Luxembourg",
        "Switzerland",
        "Italy",
        "Monaco",
        "Spain",
        "Andorra",
        "Brazil",
        "Suriname",
    ]
    first = [
        ExampleFact(1, "shares border with", 10 + i, "France", name, 0.99 - 0.002 * i, 1, 1)
        for i, name in enumerate(names)
    ]
    capitals = ["Berlin", "Brussels", "Luxembourg", "Bern", "Rome"]
    second = [
        ExampleFact(30 + i, "capital of", 10 + i, city, names[i], 0.93 - 0.02 * i, 2, -1)
        for i, city in enumerate(capitals)
    ]
    second += [
        ExampleFact(10, "continent", 50, "Germany", "Europe", 0.11, 2, 1),
        ExampleFact(14, "continent", 50, "Italy", "Europe", 0.09, 2, 1),
    ]
    return Example(
        "atlas-812",
        "Which capital city of a country bordering France has the most people?",
        "wrong",
        "superlative",
        2,
        frozenset({1}),
        ("France",),
        frozenset({30}),
        ("Berlin",),
        tuple(first + second),
        (("Berlin", 0.31), ("Rome", 0.30)),
        outputs(("Paris", False), ("Lyon", False), ("Rome", False), ("Berlin", True)),
    )


def currency() -> Example:
    facts = (
        ExampleFact(1, "located in", 2, "Nuuk", "Greenland", 0.998, 1, 1),
        ExampleFact(1, "time zone", 4, "Nuuk", "America/Nuuk", 0.02, 1, 1),
        ExampleFact(2, "currency", 3, "Greenland", "Danish krone", 0.991, 2, 1),
        ExampleFact(2, "continent", 5, "Greenland", "North America", 0.012, 2, 1),
    )
    return Example(
        "atlas-77",
        "What money do you pay with in the country where Nuuk is?",
        "fixed",
        "multi-hop",
        2,
        frozenset({1}),
        ("Nuuk",),
        frozenset({3}),
        ("Danish krone",),
        facts,
        (("Danish krone", 0.97), ("North America", 0.01)),
        outputs(("Euro", False), ("America/Nuuk", False), ("Danish krone", True), ("Danish krone", True)),
    )


def chinese() -> Example:
    facts = (
        ExampleFact(1, "导演", 2, "十面埋伏之很长很长很长的电影名字", "张艺谋", 0.97, 1, 1),
        ExampleFact(3, "导演", 2, "红高粱", "张艺谋", 0.95, 2, -1),
        ExampleFact(1, "导演", 2, "十面埋伏之很长很长很长的电影名字", "张艺谋", 0.41, 2, -1),
    )
    return Example(
        "zjqa-5",
        "十面埋伏的导演还导演过哪部电影？",
        "right",
        "generic",
        2,
        frozenset({1}),
        ("十面埋伏",),
        frozenset({3}),
        ("红高粱",),
        facts,
        (("红高粱", 0.9),),
        outputs(("红高粱", True), ("", False), ("红高粱", True), ("红高粱", True)),
    )


def hostile() -> Example:
    evil = '<script>alert("x")</script>'
    facts = (ExampleFact(1, f"rel{evil}", 2, evil, f"‮gnihton {evil}'\"", 0.5, 1, 1),)
    return Example(
        "<img src=x onerror=alert(1)>",
        f"Who is {evil}?",
        "broken",
        "<b>odd</b>",
        1,
        frozenset({1}),
        (evil,),
        frozenset({2}),
        (evil,),
        facts,
        ((evil, 0.5),),
        outputs((evil, True), ("</pre></style><svg onload=alert(1)>", False), ("a\x00b" * 400, False), ("", False)),
    )


def fake_curves() -> pl.DataFrame:
    rows = []
    for step in range(25, 2001, 25):
        rows.append(
            (step, 1 + step // 400, "train", "loss", 0.08 + 1.4 * 0.9975**step + 0.03 * ((step * 37 % 11) / 11))
        )
    for epoch in range(1, 6):
        for metric, best in (("hits_at_1", 0.93), ("recall_of_answers", 0.97)):
            rows.append((epoch * 400, epoch, "dev", metric, best - 0.5 * 0.4**epoch))
        rows.append((epoch * 400, epoch, "dev", "loss", 0.12 + 0.6 * 0.5**epoch))
    schema = {"step": pl.Int64, "epoch": pl.Int32, "split": pl.String, "metric": pl.String, "value": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def fake_corpus(folder: Path) -> Path:
    """A corpus artifact as `rewriting.corpus` writes it, where nobody was asked."""
    folder.mkdir(parents=True)
    paths = [("capital", 1, 40, 40), ("located in, currency", 2, 60, 48), ("<inv>-located in", 1, 20, 5)]
    rows = []
    for number, (path, hops, asked, kept) in enumerate(paths):
        for place in range(asked):
            verdict = "kept" if place < kept else ("QA wrong", "unfaithful", "teacher empty")[place % 3]
            head, tail = f"Place {number}-{place}", f"Thing {place}"
            rows.append(
                {
                    "pair": f"{number}-{place}",
                    "question": f"q{number}-{place}",
                    "relation_path": path,
                    "hops": hops,
                    "triple_text": f"({head}, {path}, {tail})",
                    "text": "" if verdict == "teacher empty" else f"The {path} of {head} is {tail}.",
                    "verdict": verdict,
                    "qa_answer": "Some town" if verdict == "QA wrong" else tail,
                    "split": ("dev" if place % 10 == 9 else "train") if verdict == "kept" else None,
                }
            )
    pl.DataFrame(rows).write_parquet(folder / "corpus.parquet")
    pl.DataFrame(
        [
            {
                "relation_path": path,
                "hops": hops,
                "asked": asked,
                "kept": kept,
                "acceptance": kept / asked,
                "rejected": "{}",
                "teacher_tokens": 90 * asked,
                "qa_tokens": 70 * asked,
            }
            for path, hops, asked, kept in paths
        ]
    ).write_parquet(folder / "acceptance.parquet")
    (folder / "meta.json").write_text(json.dumps({"teacher": "openai:big", "qa_model": "builtin"}))
    (folder / "volatile").mkdir()
    pl.DataFrame(
        [{"relation_path": path, "hops": hops, "cost": 0.5 * asked} for path, hops, asked, _ in paths]
    ).write_parquet(folder / "volatile" / "cost.parquet")
    return folder


def fake_rewriter(folder: Path) -> Path:
    """A rewriter artifact as `rewriting.train` writes it, where nothing was trained."""
    folder.mkdir(parents=True)
    curve = [(step, 1 + step // 100, "train", "loss", 2.0 * 0.99**step + 0.2) for step in range(10, 401, 10)]
    curve += [(100 * epoch, epoch, "dev", "loss", 0.25 + 0.9 * 0.5**epoch) for epoch in range(1, 5)]
    schema = {"step": pl.Int64, "epoch": pl.Int32, "split": pl.String, "metric": pl.String, "value": pl.Float64}
    pl.DataFrame(curve, schema=schema, orient="row").write_parquet(folder / "curves.parquet")
    samples = [
        {
            "epoch": epoch,
            "pair": f"p{number}",
            "instruction": f"The knowledge graph is: (Nuuk, located in, Greenland) {number}. The sentence is:",
            "reference": "Nuuk lies in Greenland.",
            "text": f"Nuuk is in Greenland, told after pass {epoch}.",
        }
        for epoch in (3, 4)
        for number in range(3)
    ]
    pl.DataFrame(samples).write_parquet(folder / "samples.parquet")
    meta = {
        "base": "builtin",
        "corpus_sha256": hash_like("corpus"),
        "parameters": 491_520,
        "pairs": {"train": 84, "dev": 9},
        "left_out": {"train": 2, "dev": 0, "examples": ["p1", "p2"]},
        "best_epoch": 4,
        "dev_loss": 0.306,
    }
    (folder / "meta.json").write_text(json.dumps(meta))
    return folder


def fake_knowledge(folder: Path, retriever: str, form: str) -> Path:
    """A knowledge artifact as `rewriting.write` writes it, where nothing was written."""
    folder.mkdir(parents=True)
    actions = ["kept"] * 90 + ["replaced"] * 6 + ["added"] * 3 + ["failed"]
    pl.DataFrame(
        {
            "written": ["" if action in ("added", "failed") else "Nuuk is in Greenland." for action in actions],
            "invented": [["Mars"] if action == "replaced" else [] for action in actions],
            "action": actions,
        },
        schema_overrides={"invented": pl.List(pl.String)},
    ).write_parquet(folder / "sentences.parquet")
    counts = {"untold": 4, "truncated": 2, "no_text": 1, "prompt_tokens": 9_000, "completion_tokens": 3_456}
    (folder / "manifest.json").write_text(json.dumps({"counts": counts if form == "rewritten" else {}}))
    (folder / "meta.json").write_text(json.dumps({"retriever": retriever, "format": form}))
    return folder


def fake_report(models: tuple[str, ...] = (MODEL,), experiments: dict[str, float] | None = None) -> ReportData:
    names = (
        "kg",
        "dkg",
        "questions",
        "retriever",
        "facts rigel",
        "facts random",
        "facts oracle",
        "knowledge rigel",
        "answers none",
        "answers rigel",
        "scores",
    )
    times = (11.2, 1.4, 6.9, 304.0, 12.1, 2.2, 2.9, 0.7, 41.0, 63.5, 4.4)
    profile = Profile.model_validate(
        {
            "name": "atlas",
            "description": "The bundled graph of countries and cities, answered by the packaged model.",
            "kg": {"name": "Atlas", "files": ["bundled:atlas"]},
            "questions": {"name": "Atlas questions", "source": "atlas"},
        }
    )
    return ReportData(
        title="Atlas, answered with Rigel facts",
        profile=profile.model_dump(mode="json"),
        aggregates=fake_aggregates(models, experiments),
        kg_counts={"entities": 41_233, "literals": 62_118, "relations": 23, "triples": 223_471, "rejects": 0},
        dkg_counts={"edges": 389_102, "relations": 46, "bytes": 3_112_816},
        question_counts={"train": 9_120, "dev": 1_204, "test": 2_412, "wordings": {"seen": 84, "only in test": 19}},
        curves=fake_curves(),
        examples=[currency(), neighbours(), chinese(), hostile()],
        stages=[
            {
                "name": name,
                "status": "cached" if seconds < 2 else "computed",
                "seconds": seconds,
                "digest": f"{hash_like(name)}",
            }
            for name, seconds in zip(names, times, strict=True)
        ],
        links={
            "MLflow": "http://127.0.0.1:5000/#/experiments/1",
            "Prefect": "http://127.0.0.1:4200",
            "bad": "javascript:alert(1)",
        },
        environment={
            "seed": 7,
            "git": "1a2b3c4 (clean)",
            "kg digest": hash_like("kg"),
            "packages": {"python": "3.11.7", "torch": "2.9.0", "duckdb": "1.5.6"},
        },
        attribution="Contains data of GeoNames (geonames.org), CC BY 4.0.",
        created="2025-03-04T15:06:07+00:00",
    )


def hash_like(name: str) -> str:
    import hashlib

    return hashlib.sha256(name.encode()).hexdigest()
