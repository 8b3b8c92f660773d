"""A made-up run for looking at the report; numbers are invented, names are real."""

from __future__ import annotations

import polars as pl

from kgqa_core.config import Profile
from kgqa_core.report.data import Example, ExampleFact, ExampleOutput, ReportData
from kgqa_core.types import COMPLEXITY_TYPES

MODEL = "builtin"
EXPERIMENTS = {"none/none": 0.084, "random/triples": 0.171, "rigel/triples": 0.752, "oracle/triples": 0.806}
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


def fake_aggregates(models: tuple[str, ...] = (MODEL,)) -> dict:
    scores: dict = {
        "rigel/-/-": {
            "test": {
                "hits_at_1": cell(0.927, 2412),
                "hits_at_5": cell(0.951, 2412),
                "recall_of_answers": cell(0.968, 2412),
            }
        }
    }
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
        for name, value in EXPERIMENTS.items():
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
    return {
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


def fake_report(models: tuple[str, ...] = (MODEL,)) -> ReportData:
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
        aggregates=fake_aggregates(models),
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
