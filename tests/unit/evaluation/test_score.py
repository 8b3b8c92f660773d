"""The scores stage on a hand-made set of artifacts whose every number is known."""

import json
from pathlib import Path

import duckdb
import polars as pl
import pytest

from kgqa_core.config import EvaluationOptions, Price
from kgqa_core.datasets.derived.splits import leakage, write_leakage
from kgqa_core.datasets.files.question import write_questions
from kgqa_core.errors import ArtifactError, QuestionFileError
from kgqa_core.evaluation.aggregate import COMBINED
from kgqa_core.evaluation.predictions import EXPERIMENT, evaluate_predictions
from kgqa_core.evaluation.score import ScoringInputs, score
from kgqa_core.kg.store import SCHEMA_VERSION, create_tables, write_meta
from kgqa_core.report.tables import with_answers_table
from kgqa_core.types import Question
from kgqa_core.workspace import Workspace

FRANCE, PARIS, NORWAY, OSLO, BERGEN = range(5)
CAPITAL = (("capital",),)


def make_kg(folder: Path) -> Path:
    folder.mkdir()
    with duckdb.connect(str(folder / "kg.duckdb")) as base:
        create_tables(base, "kg")
        for i, name in enumerate(("France", "Paris", "Norway", "Oslo", "Bergen")):
            base.execute("INSERT INTO entities(id, key, kind) VALUES (?, ?, 'entity')", [i, name])
        base.execute("INSERT INTO aliases VALUES (?, '', 'City of Light')", [PARIS])
        base.execute("INSERT INTO relations VALUES (0, 'capital', 'entity')")
        base.execute("INSERT INTO triples VALUES (0, 0, 0, 1, 0), (1, 2, 0, 3, 0), (2, 2, 0, 4, 0)")
        write_meta(base, "kg", {"schema_version": SCHEMA_VERSION, "counts": {"triples": 3}, "languages": ["en", ""]})
    return folder


def question(name: str, answer: str, entity: int | None, topic: int, **extra: object) -> Question:
    return Question(
        id=name,
        text=f"what is asked in {name}?",
        topic_entities=(topic,),
        answer_keys=(answer,),
        answer_names=((answer,),),
        answers=() if entity is None else (entity,),
        **extra,  # type: ignore[arg-type]
    )


QUESTIONS = [
    question("train1", "Paris", PARIS, FRANCE, split="train", relation_paths=CAPITAL),
    question("q1", "Paris", PARIS, FRANCE, complexity="generic", hops=1, relation_paths=CAPITAL),  # leaked
    question("q2", "Oslo", OSLO, NORWAY, complexity="multi-hop", hops=2),
    question("q3", "4", None, NORWAY, complexity="count", answer_type="number"),
    question("q4", "Atlantis", None, FRANCE, complexity="generic", unlinkable="answer 'Atlantis' is not in this graph"),
]


@pytest.fixture
def artifacts(tmp_path: Path) -> dict[str, Path]:
    folders = {name: tmp_path / name for name in ("questions", "rigel", "none", "with_facts", "out")}
    for folder in folders.values():
        folder.mkdir()
    write_questions(folders["questions"], QUESTIONS)
    write_leakage(folders["questions"], leakage(QUESTIONS))
    write_facts(
        folders["rigel"],
        facts=[("q1", 0), ("q2", 1), ("q2", 2)],
        entities=[("q1", 0, PARIS), ("q2", 0, BERGEN), ("q2", 1, OSLO)],
    )
    write_answers(folders["none"], "none", "none", {"q1": "Paris", "q2": "Norway", "q3": "14", "q4": "Atlantis"})
    write_answers(folders["with_facts"], "rigel", "triples", {"q1": "Paris", "q2": "It is Oslo.", "q3": "4.0"})
    return folders | {"kg": make_kg(tmp_path / "kg")}


def write_facts(folder: Path, facts: list[tuple[str, int]], entities: list[tuple[str, int, int]]) -> None:
    pl.DataFrame(facts, schema={"question": pl.String, "triple": pl.Int64}, orient="row").write_parquet(
        folder / "facts.parquet"
    )
    schema = {"question": pl.String, "rank": pl.Int32, "entity": pl.Int64}
    pl.DataFrame(entities, schema=schema, orient="row").write_parquet(folder / "entities.parquet")


def write_answers(folder: Path, retriever: str, form: str, outputs: dict[str, str]) -> None:
    rows = [(name, retriever, form, "builtin", output) for name, output in outputs.items()]
    columns = ("question", "retriever", "format", "model", "output")
    pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), orient="row").write_parquet(folder / "answers.parquet")


def run(artifacts: dict[str, Path], **extra: object) -> dict:
    folders = {name: extra.pop(name) for name in ("knowledge", "judged", "entailment", "linked") if name in extra}
    inputs = ScoringInputs(
        kg=artifacts["kg"],
        questions=artifacts["questions"],
        facts={"rigel": artifacts["rigel"]},
        answers={"none": artifacts["none"], "rigel": artifacts["with_facts"]},
        **folders,
    )
    counts = score(Workspace(artifacts["out"]), inputs, EvaluationOptions(bootstrap=200), 7, **extra)
    return json.loads((artifacts["out"] / "aggregates.json").read_text()) | {"counts": counts}


def values(aggregates: dict, experiment: str, table: str = "scores") -> dict[str, float]:
    cells = aggregates[table][experiment]["test"]
    return {metric: cell["value"] for metric, cell in cells.items()}


def test_retriever_alone_by_hand(artifacts: dict[str, Path]) -> None:
    found = values(run(artifacts), "rigel/-/-")
    assert found == {"hits_at_1": 0.25, "hits_at_5": 0.5, "recall_of_answers": 0.5}


def test_language_model_by_hand(artifacts: dict[str, Path]) -> None:
    aggregates = run(artifacts)
    none = values(aggregates, "none/none/builtin")
    assert none["exact"] == 0.25  # Atlantis is right, but not in the graph
    assert none["contains"] == 0.25
    assert none["contains_substring"] == 0.5  # 4 in 14
    with_facts = values(aggregates, "rigel/triples/builtin")
    assert with_facts["exact"] == 0.5
    assert with_facts["contains"] == 0.75
    assert aggregates["gain_over_no_knowledge"] == {"rigel/triples/builtin": {"contains": 200.0, "exact": 100.0}}


def test_verdicts_of_a_judge_are_a_column_and_what_has_none_or_is_not_linked_scores_0(
    artifacts: dict[str, Path], tmp_path: Path
) -> None:
    verdicts = [("q1", True), ("q2", True), ("q3", None), ("q4", True)]
    columns = dict.fromkeys(("question", "retriever", "format", "model"), pl.String) | {"judged": pl.Boolean}
    rows = [(question, "rigel", "triples", "builtin", verdict) for question, verdict in verdicts]
    pl.DataFrame(rows, schema=columns, orient="row").write_parquet(tmp_path / "judged.parquet")
    aggregates = run(artifacts, judged={"rigel/triples": tmp_path})
    assert values(aggregates, "rigel/triples/builtin")["judged"] == 0.5
    assert "judged" not in values(aggregates, "none/none/builtin")


def test_no_question_leaves_a_denominator(artifacts: dict[str, Path]) -> None:
    aggregates = run(artifacts)
    for experiment in aggregates["scores"].values():
        assert {cell["n"] for cell in experiment["test"].values()} == {4}
    assert aggregates["n_unlinkable"] == {"test": 1, "train": 0}
    assert aggregates["counts"]["unlinkable"] == 1


def test_scores_without_leaked_questions(artifacts: dict[str, Path]) -> None:
    aggregates = run(artifacts)
    assert aggregates["leakage"]["leaked"] == 1
    cell = aggregates["without_leaked"]["rigel/triples/builtin"]["test"]["contains"]
    assert (cell["n"], cell["value"]) == (3, 0.666667)


def test_the_published_denominator_leaves_out_questions_without_answers(artifacts: dict[str, Path]) -> None:
    assert "with_answers" not in run(artifacts), "every question has a gold answer"
    empty = Question("q5", "what is not answered?", topic_entities=(FRANCE,), unlinkable="no gold answer is given")
    write_questions(artifacts["questions"], [*QUESTIONS, empty])
    aggregates = run(artifacts)
    for experiment in ("rigel/triples/builtin", "rigel/-/-"):
        every, those = (aggregates[key][experiment]["test"] for key in ("scores", "with_answers"))
        assert {cell["n"] for cell in every.values()} == {5}
        assert {cell["n"] for cell in those.values()} == {4}
    assert values(aggregates, "rigel/triples/builtin", "with_answers")["contains"] == 0.75
    assert values(aggregates, "rigel/triples/builtin")["contains"] == 0.6
    grid = with_answers_table(aggregates)
    assert [label for label, _ in grid.rows if "Rigel" in label]
    assert not with_answers_table(run(artifacts) | {"with_answers": {}}).rows


def test_breakdowns_by_complexity_and_hops(artifacts: dict[str, Path]) -> None:
    aggregates = run(artifacts)
    groups = aggregates["by_complexity"]["rigel/triples/builtin"]
    assert {name: (cell["contains"]["value"], cell["contains"]["n"]) for name, cell in groups.items()} == {
        "generic": (0.5, 2),
        "multi-hop": (1.0, 1),
        "count": (1.0, 1),
        COMBINED: (0.666667, 3),
    }
    assert {name: cell["hits_at_1"]["value"] for name, cell in aggregates["by_hops"]["rigel/-/-"].items()} == {
        "1": 1.0,
        "2": 0.0,
    }


def test_a_limit_makes_the_sample_the_denominator_and_still_counts_lost_answers(artifacts: dict[str, Path]) -> None:
    write_answers(artifacts["none"], "none", "none", {"q1": "Paris", "q3": "14"})
    write_answers(artifacts["with_facts"], "rigel", "triples", {"q1": "Paris"})
    scores = run(artifacts, limit=2)["scores"]
    assert scores["none/none/builtin"]["test"]["exact"]["n"] == 2
    assert scores["rigel/triples/builtin"]["test"]["exact"] | {"low": 0, "high": 0} == {
        "value": 0.5,
        "low": 0,
        "high": 0,
        "n": 2,
    }
    assert scores["rigel/-/-"]["test"]["hits_at_1"]["n"] == 4
    assert run(artifacts, limit=3)["scores"]["none/none/builtin"]["test"]["exact"]["n"] == 3
    assert run(artifacts)["scores"]["none/none/builtin"]["test"]["exact"]["n"] == 4


def test_rows_are_sorted_and_a_second_run_writes_the_same_bytes(artifacts: dict[str, Path]) -> None:
    run(artifacts)
    first = {name: (artifacts["out"] / name).read_bytes() for name in ("scores.parquet", "aggregates.json")}
    run(artifacts)
    assert first == {name: (artifacts["out"] / name).read_bytes() for name in first}
    frame = pl.read_parquet(artifacts["out"] / "scores.parquet")
    assert frame.columns == ["experiment", "split", "question", "metric", "value"]
    assert frame.height == 4 * (3 + 7 + 7)
    assert frame.equals(frame.sort("experiment", "split", "question", "metric"))


def test_a_fact_from_another_graph_is_noticed(artifacts: dict[str, Path]) -> None:
    write_facts(artifacts["rigel"], facts=[("q1", 99)], entities=[])
    with pytest.raises(ArtifactError, match="triple 99"):
        run(artifacts)


def test_a_question_answered_twice_is_noticed(artifacts: dict[str, Path]) -> None:
    frame = pl.read_parquet(artifacts["none"] / "answers.parquet")
    pl.concat([frame, frame.head(1)]).write_parquet(artifacts["none"] / "answers.parquet")
    with pytest.raises(ArtifactError, match="'q1' twice"):
        run(artifacts)


def test_a_missing_artifact_is_named(artifacts: dict[str, Path]) -> None:
    (artifacts["none"] / "answers.parquet").unlink()
    with pytest.raises(ArtifactError, match=r"answers\.parquet is missing"):
        run(artifacts)


def test_no_answers_at_all_score_zero_under_the_name_of_the_key(artifacts: dict[str, Path]) -> None:
    write_answers(artifacts["none"], "none", "none", {})
    aggregates = json.loads(json.dumps(run(artifacts)))
    assert "none/none/builtin" not in aggregates["scores"]
    answers = {"none/none/builtin": artifacts["none"]}
    inputs = ScoringInputs(artifacts["kg"], artifacts["questions"], facts={}, answers=answers)
    score(Workspace(artifacts["out"]), inputs, EvaluationOptions(bootstrap=100), 7)
    cell = json.loads((artifacts["out"] / "aggregates.json").read_text())["scores"]["none/none/builtin"]["test"][
        "exact"
    ]
    assert cell == {"value": 0.0, "low": 0.0, "high": 0.0, "n": 4}


def write_paths(folder: Path, paths: list[tuple[str, int, list[str]]]) -> None:
    schema = {"question": pl.String, "rank": pl.Int32, "path": pl.List(pl.String)}
    pl.DataFrame(paths, schema=schema, orient="row").write_parquet(folder / "paths.parquet")


def test_predicted_paths_are_scored_on_annotated_questions_only(artifacts: dict[str, Path]) -> None:
    write_paths(artifacts["rigel"], [("q1", 1, ["capital"]), ("q1", 0, ["<inv>-capital"]), ("q2", 0, ["capital"])])
    cells = run(artifacts)["scores"]["rigel/-/-"]["test"]
    # q1 has one annotated hop and path, q2 two hops and no path, q3 and q4 neither
    assert {name: (cells[name]["value"], cells[name]["n"]) for name in ("hop_accuracy", "path_at_1", "path_at_5")} == {
        "hop_accuracy": (0.5, 2),
        "path_at_1": (0.0, 1),
        "path_at_5": (1.0, 1),
    }
    assert cells["hits_at_1"]["n"] == 4


def test_a_question_without_a_predicted_path_stays_in_the_denominator(artifacts: dict[str, Path]) -> None:
    write_paths(artifacts["rigel"], [("q2", 0, ["capital", "capital"])])
    cells = run(artifacts)["scores"]["rigel/-/-"]["test"]
    assert (cells["hop_accuracy"]["value"], cells["hop_accuracy"]["n"], cells["path_at_5"]["value"]) == (0.5, 2, 0.0)


def test_retrievers_without_paths_have_no_path_metrics(artifacts: dict[str, Path]) -> None:
    write_paths(artifacts["rigel"], [])
    assert set(run(artifacts)["scores"]["rigel/-/-"]["test"]) == {"hits_at_1", "hits_at_5", "recall_of_answers"}


def test_comparisons_are_in_the_aggregates(artifacts: dict[str, Path]) -> None:
    found = {row["metric"]: row for row in run(artifacts)["comparisons"]}
    assert set(found) == {"hit_rra", "exact"}
    row = found["exact"]  # q3 is fixed: 14 becomes 4.0
    assert (row["experiment"], row["baseline"]) == ("rigel/triples/builtin", "none/none/builtin")
    assert (row["helpful"], row["harmful"], row["n"], row["p"]) == (1, 0, 4, 1.0)


def test_length_tokens_and_money_by_hand(artifacts: dict[str, Path], tmp_path: Path) -> None:
    frame = pl.read_parquet(artifacts["with_facts"] / "answers.parquet").with_columns(
        pl.Series("prompt_tokens", [30, 20, 10]),
        pl.Series("tokens", [4, 2, 2]),
        pl.Series("finish", ["stop", "length", "stop"]),
        pl.lit("openai:m").alias("model"),
    )
    frame.write_parquet(artifacts["with_facts"] / "answers.parquet")
    texts = {"train1": "not asked", "q1": "(France, capital, Paris)", "q2": "(Norway, capital, Oslo) x", "q3": " "}
    folder = tmp_path / "knowledge"
    folder.mkdir()
    pl.DataFrame({"question": list(texts), "text": list(texts.values())}).with_columns(
        retriever=pl.lit("rigel"), format=pl.lit("triples")
    ).write_parquet(folder / "knowledge.parquet")
    prices = {"openai:m": Price(prompt=1.0, completion=10.0)}
    found = run(artifacts, knowledge={"rigel": folder}, prices=prices)["cost"]
    assert found["rigel/triples/openai:m"] == {
        "questions": 4,
        "words": 1.75,  # 3 + 4 over four questions
        "characters": 12.25,  # 24 + 25
        "without_knowledge": 2,  # q3 and q4
        "prompt_tokens": 15.0,
        "completion_tokens": 2.0,
        "cost_per_1000": 0.035,  # (60 * 1 + 8 * 10) / 1e6 for four
        "finish": {"stop": 2, "length": 1},
    }
    assert found["none/none/builtin"] == {"questions": 4, "words": 0.0, "characters": 0.0, "without_knowledge": 4}


def write_lines(path: Path, rows: list[object]) -> Path:
    path.write_text(
        "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows), encoding="utf-8"
    )
    return path


def test_predictions_of_somebody_else(tmp_path: Path) -> None:
    questions = write_lines(
        tmp_path / "questions.jsonl",
        [
            {
                "id": "a",
                "question": "capital of Spain?",
                "topic_entities": ["Spain"],
                "answers": ["Madrid"],
                "split": "test",
            },
            {
                "id": "b",
                "question": "capital of Peru?",
                "topic_entities": ["Peru"],
                "answers": ["Lima"],
                "answer_aliases": ["City of Kings"],
                "split": "test",
            },
            {
                "id": "c",
                "question": "capital of Chad?",
                "topic_entities": ["Chad"],
                "answers": ["N'Djamena"],
                "split": "test",
            },
            {
                "id": "d",
                "question": "capital of Cuba?",
                "topic_entities": ["Cuba"],
                "answers": ["Havana"],
                "split": "train",
            },
        ],
    )
    predictions = write_lines(
        tmp_path / "predictions.jsonl",
        [
            {"id": "a", "prediction": "madrid"},
            {"id": "b", "prediction": ["Cusco", "City of Kings"]},
            {"id": "x", "prediction": "?"},
        ],
    )
    found = evaluate_predictions(predictions, questions)
    cells = found["scores"][EXPERIMENT]["test"]
    assert {name: cells[name]["value"] for name in ("exact", "contains", "f1")} == {
        "exact": 0.333333,
        "contains": 0.666667,
        "f1": 0.555556,
    }
    assert cells["exact"]["n"] == 3
    assert "train" not in found["scores"][EXPERIMENT]
    assert (found["n_missing"], found["unknown_ids"]) == (1, ["x"])


def test_predictions_may_use_the_names_of_a_graph(tmp_path: Path) -> None:
    kg = make_kg(tmp_path / "kg")
    questions = write_lines(
        tmp_path / "q.jsonl", [{"id": "a", "question": "?", "topic_entities": ["France"], "answers": ["Paris"]}]
    )
    predictions = write_lines(tmp_path / "p.jsonl", [{"id": "a", "prediction": "the City of Light"}])
    assert evaluate_predictions(predictions, questions)["scores"][EXPERIMENT]["test"]["exact"]["value"] == 0.0
    assert evaluate_predictions(predictions, questions, kg=kg)["scores"][EXPERIMENT]["test"]["exact"]["value"] == 1.0


def test_a_malformed_prediction_is_named_by_its_line(tmp_path: Path) -> None:
    predictions = write_lines(tmp_path / "p.jsonl", [{"id": "q1", "prediction": "Paris"}, "{nonsense"])
    with pytest.raises(QuestionFileError, match="line 2"):
        evaluate_predictions(predictions, QUESTIONS)


def test_predictions_for_other_questions_are_refused(tmp_path: Path) -> None:
    predictions = write_lines(tmp_path / "p.jsonl", [{"id": "zz", "prediction": "Paris"}])
    with pytest.raises(QuestionFileError, match="none of its 1 ids"):
        evaluate_predictions(predictions, QUESTIONS)
