"""A benchmark of the company register: labels, quotas, splits, determinism, and a verifier that finds what is wrong."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kgqa_core.config import AnswerabilityOptions, KgOptions, QuestionsOptions
from kgqa_core.datasets.load import load
from kgqa_core.errors import ArtifactError, InputError
from kgqa_core.kg.build import build as build_kg
from kgqa_core.kg.overlay import carry_base
from kgqa_core.kg.store import KgStore
from kgqa_core.papers.grailqability.builder.build import build
from kgqa_core.papers.grailqability.builder.records import Benchmark, read_benchmark
from kgqa_core.papers.grailqability.builder.score import check_predicted, read_predicted, table
from kgqa_core.papers.grailqability.builder.verify import verify
from kgqa_core.papers.grailqability.metrics import Predicted
from kgqa_core.store.digest import content_digest, hash_file
from kgqa_core.workspace import Workspace
from tests.support.register_benchmark import write_benchmark, write_inputs

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_inputs(tmp_path_factory.mktemp("register"))


@pytest.fixture(scope="module")
def made(inputs: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    before = hash_file(inputs[0] / "kg.duckdb")
    folder = write_benchmark(tmp_path_factory.mktemp("benchmark") / "made", *inputs)
    assert hash_file(inputs[0] / "kg.duckdb") == before, "the ideal graph is not touched"
    return folder


def test_the_verifier_is_clean(made: Path) -> None:
    found = verify(made)
    assert found["clean"], [check for check in found["checks"] if check["faults"]]
    assert all(check["checked"] for check in found["checks"])


def test_quotas_and_shares(made: Path) -> None:
    statistics = read_benchmark(made).statistics
    every = statistics["splits"][-1]
    assert every["U_share"] == pytest.approx(0.33, abs=0.01)
    assert [row["questions"] / every["questions"] for row in statistics["splits"][:3]] == pytest.approx(
        [0.7, 0.1, 0.2], abs=0.03
    )
    by_kind = {row["drop"]: row for row in statistics["drops"]}
    assert all(0 < by_kind[kind]["U"] <= by_kind[kind]["quota"] for kind in ("type", "relation", "entity", "fact"))
    assert by_kind["fact"]["NK"] == by_kind["relation"]["NA_only"] == by_kind["type"]["NA_only"] == 0


def test_what_was_dropped_is_gone_and_labels_follow_from_it(made: Path) -> None:
    benchmark = read_benchmark(made)
    with KgStore.open(made / "kg") as store:
        relations = set(store.relation_keys())
        gone = {key for drop in benchmark.drops for key in drop.entities}
        assert gone and not any(store.resolve(sorted(gone)).values())
    lost = {key for drop in benchmark.drops for key in drop.relations}
    assert lost and not lost & relations
    for question, ideal in zip(benchmark.questions, benchmark.ideal, strict=True):
        names = any(f"{key}" in ideal.s_expression.replace(")", " ").split() for key in lost)
        assert question.s_expression is None or not names
        if question.complexity == "count":
            assert question.answers == (("0",) if not question.answerable else question.answers)
        assert question.answerable == (ideal.drop is None)


def test_training_holds_no_ideal_form_of_what_is_gone(made: Path) -> None:
    benchmark = read_benchmark(made)
    text = (made / "train.jsonl").read_text(encoding="utf-8")
    gone = [
        ideal.s_expression
        for question, ideal in zip(benchmark.questions, benchmark.ideal, strict=True)
        if question.split == "train" and question.s_expression is None
    ]
    assert gone and not any(json.dumps(form)[1:-1] in text for form in gone)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_benchmark(inputs: tuple[Path, Path], made: Path, tmp_path: Path) -> None:
    again, other = (write_benchmark(tmp_path / str(seed), *inputs, seed) for seed in (7, 8))
    assert content_digest(again) == content_digest(made) != content_digest(other)


def test_gold_scores_full_and_nothing_scores_nothing(made: Path) -> None:
    benchmark = read_benchmark(made)
    gold = {row.id: Predicted(row.s_expression, frozenset(row.answers)) for row in benchmark.questions}
    rows = table(benchmark, gold)
    assert {row["group"] for row in rows} >= {"all", "A", "U", "NK", "NA", "iid", "zero-shot"}
    assert all(row["EM"] == row["F1(R)"] == row["F1(L)"] == 100.0 for row in rows)
    assert all(row["EM"] == row["F1(R)"] == row["F1(L)"] == 0.0 for row in table(benchmark, {}))
    ideal = {
        question.id: Predicted("(JOIN x y)", frozenset(one.answers))
        for question, one in zip(benchmark.questions, benchmark.ideal, strict=True)
    }
    lenient = {row["group"]: row for row in table(benchmark, ideal)}
    assert lenient["U"]["F1(L)"] == 100.0 and lenient["U"]["F1(R)"] == 0.0


def rewrite(path: Path, change: Callable[[Rows], Rows]) -> None:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    path.write_text("".join(json.dumps(row) + "\n" for row in change(rows)), encoding="utf-8")


def answerable(benchmark: Benchmark) -> list[int]:
    return [n for n, row in enumerate(benchmark.questions) if row.split == "train" and row.answerable]


def test_the_verifier_finds_wrong_labels(made: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(made, tmp_path / "copy")
    planted = [
        ({"answers": ["nobody"]}, "the answers are those of the modified graph"),
        ({"s_expression": None}, "NK where the graph lacks what the form names, and only there"),
        ({"answerable": False}, "A where the modified graph answers, else NA"),
        ({"s_expression": "(JOIN lives_in nowhere)"}, "a form that is known is the ideal one"),
    ]
    places = answerable(read_benchmark(made))

    def plant(rows: Rows) -> Rows:
        for place, (fields, _) in zip(places, planted, strict=False):
            rows[place] |= fields
        return rows

    rewrite(copy / "train.jsonl", plant)
    rewrite(copy / "ideal/train.jsonl", lambda rows: [{**r, "answers": ["x"]} if r == rows[-1] else r for r in rows])
    found = verify(copy)
    faults = {check["rule"]: check["faults"] for check in found["checks"]}
    assert not found["clean"] and all(faults[rule] == 1 for _, rule in planted), faults
    assert faults["the ideal form gives the ideal answers"] == 1
    assert faults["every unanswerable question has its drop, and no other has one"] >= 1


def test_the_verifier_finds_wrong_drops_and_splits(made: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(made, tmp_path / "copy")
    rewrite(copy / "drops.jsonl", lambda rows: rows[:-1])
    benchmark = read_benchmark(made)
    level = next(one for one in benchmark.ideal if one.level == "iid")
    split = next(row.split for row in benchmark.questions if row.id == level.id)

    def claim(rows: Rows) -> Rows:
        return [{**row, "level": "full"} if row["id"] == level.id else row for row in rows]

    rewrite(copy / f"ideal/{split}.jsonl", claim)
    for name in ("", "ideal/"):  # half of the test questions are called training questions
        rows = (copy / f"{name}test.jsonl").read_text(encoding="utf-8").splitlines()
        moved = [row.replace('"split": "test"', '"split": "train"') for row in rows[::2]]
        with (copy / f"{name}train.jsonl").open("a", encoding="utf-8") as file:
            file.writelines(row + "\n" for row in moved)
        (copy / f"{name}test.jsonl").write_text("".join(row + "\n" for row in rows[1::2]), encoding="utf-8")
    faults = {check["rule"]: check["faults"] for check in verify(copy)["checks"]}
    assert faults["nothing else is gone"] == 1
    assert faults["levels are what training has seen"] >= 1 and faults["splits have their shares"] >= 1


def of_triples(
    folder: Path, triples: list[tuple[str, str, str]], questions: Rows, seed: int = 7, **options: Any
) -> Path:
    """A benchmark of a graph and questions that are written down."""
    folder.mkdir(parents=True)
    (folder / "facts.tsv").write_text("".join("\t".join(triple) + "\n" for triple in triples), encoding="utf-8")
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in questions), encoding="utf-8")
    for name in ("kg", "asked", "made"):
        (folder / name).mkdir()
    build_kg(
        Workspace(folder / "kg"),
        options=KgOptions(files=(str(folder / "facts.tsv"),), format="delimited", delimiter="\t"),
    )
    load(
        Workspace(folder / "asked"),
        kg=folder / "kg",
        options=QuestionsOptions(path=str(folder / "questions.jsonl")),
        seed=7,
    )
    given = AnswerabilityOptions(**options)
    build(Workspace(folder / "made"), kg=folder / "kg", questions=folder / "asked", options=given, seed=seed)
    return folder / "made"


def faults_of(folder: Path) -> list[Any]:
    """What the verifier finds, but for shares that so few questions cannot be cut into."""
    return [check for check in verify(folder)["checks"] if check["faults"] and "share" not in check["rule"]]


POETS = [
    triple
    for i in range(30)
    for triple in (
        (f"poet{i}", "rdf:type", "Poet"), (f"poet{i}", "rdf:type", "Veteran"), (f"poet{i}", "lives_in", f"town{i}"),
        (f"poet{i}", "wrote", f"poem{i}"), (f"poet{i}", "served_in", f"unit{i % 6}"),
    )
]  # fmt: skip
PAINTERS = [
    triple
    for i in range(5)
    for triple in (
        (f"painter{i}", "rdf:type", "Painter"), (f"painter{i}", "lives_in", "town99"), (f"painter{i}", "likes", "tea"),
        (f"old{i}", "rdf:type", "Veteran"), (f"old{i}", "lives_in", "town99"), (f"old{i}", "served_in", f"unit{i}"),
    )
]  # fmt: skip
KINDS_OF_ARTISTS = [("Poet", "rdfs:subClassOf", "Artist"), ("Painter", "rdfs:subClassOf", "Artist")]


def poets(form: str) -> Rows:
    """Questions about artists by town, of which the graph knows no others than poets, and about poems and units."""
    rows: Rows = []
    for i in range(30):
        question = {"topic_entities": [f"town{i}"], "answers": [f"poet{i}"], "s_expression": form.format(f"town{i}")}
        rows.append({"id": f"a{i:02}", "question": f"Which artist lives in town{i}?", **question})
        for relation, end in (("wrote", f"poem{i}"), ("served_in", f"unit{i % 6}")):
            question = {"topic_entities": [f"poet{i}"], "answers": [end], "relation_path": [relation]}
            rows.append({"id": f"{relation}{i:02}", "question": f"{relation} of poet{i}?", **question})
    return rows


@pytest.mark.slow
@pytest.mark.parametrize(
    "form",
    ["(AND (TYPE Artist) (JOIN lives_in {}))", "(ARGMAX (AND (TYPE Artist) (JOIN lives_in {})) (COUNT lives_in))"],
)
@pytest.mark.parametrize("seed", [1, 2])
def test_who_is_of_a_class_by_a_dropped_type_is_not_of_it_any_more(tmp_path: Path, form: str, seed: int) -> None:
    options = {"p_u": 0.7, "drop_shares": (1, 0, 0, 0), "largest_drop_share": 1.0}
    made = of_triples(tmp_path / "poets", POETS + PAINTERS + KINDS_OF_ARTISTS, poets(form), seed, **options)
    assert not faults_of(made)
    benchmark = read_benchmark(made)
    dropped = [drop.element for drop in benchmark.drops]
    artists = [
        (question, ideal)
        for question, ideal in zip(benchmark.questions, benchmark.ideal, strict=True)
        if question.id[0] == "a"
    ]
    if ("Poet",) in dropped:
        assert not any(question.answerable for question, _ in artists)
        assert {ideal.step for _, ideal in artists} == {dropped.index(("Poet",))}
    if {("Poet",), ("Veteran",)} <= set(dropped):
        last = benchmark.drops[max(dropped.index(("Poet",)), dropped.index(("Veteran",)))]
        assert {f"poet{i}" for i in range(30)} <= set(last.entities), "who has no other type goes with the last"


@pytest.mark.slow
def test_a_second_best_needs_two_values_and_not_two_members(tmp_path: Path) -> None:
    draw = random.Random(1)
    triples = {(f"p{i}", "likes", f"f{draw.randrange(5)}") for i in range(60) for _ in range(2)}
    triples |= {(f"p{i}", "lives_in", f"t{draw.randrange(12)}") for i in range(60)}
    likes = {f"p{i}": sorted(t for h, r, t in triples if h == f"p{i}" and r == "likes") for i in range(60)}
    fans = Counter(t for _, relation, t in triples if relation == "likes")
    rows: Rows = []
    for person, liked in likes.items():
        counts = sorted({fans[one] for one in liked}, reverse=True)
        if len(counts) > 1:
            second = [one for one in liked if fans[one] == counts[1]]
            form = f"(NTHMAX 2 (JOIN (R likes) {person}) (COUNT (R likes)))"
            rows.append({"id": f"n{person}", "question": f"What of {person}?", "topic_entities": [person],
                         "answers": second, "s_expression": form})  # fmt: skip
        home = next(t for h, r, t in triples if h == person and r == "lives_in")
        rows.append({"id": f"h{person}", "question": f"Where is {person}?", "topic_entities": [person],
                     "answers": [home], "relation_path": ["lives_in"]})  # fmt: skip
    for seed in (1, 2):
        made = of_triples(tmp_path / str(seed), sorted(triples), rows, seed)
        assert not faults_of(made)
        by_kind = {row["drop"]: row for row in read_benchmark(made).statistics["drops"]}
        assert all(by_kind[kind]["U"] <= by_kind[kind]["quota"] for kind in ("relation", "entity", "fact"))


def test_the_verifier_finds_wrong_causes_drops_and_tables(made: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(made, tmp_path / "copy")
    benchmark = read_benchmark(made)
    wrong = {
        question.id: next(drop.step for drop in benchmark.drops if drop.step > ideal.step)
        for question, ideal in zip(benchmark.questions, benchmark.ideal, strict=True)
        if ideal.step is not None and ideal.step < benchmark.drops[-1].step and question.s_expression is not None
    }
    for split in ("train", "dev", "test"):
        rewrite(
            copy / f"ideal/{split}.jsonl",
            lambda rows: [{**row, "step": wrong.get(row["id"], row["step"])} for row in rows],
        )
    rewrite(copy / "drops.jsonl", lambda rows: [{**row, "facts": row["facts"] + 1} for row in rows[:2]] + rows[2:])
    table = json.loads((copy / "statistics.json").read_text(encoding="utf-8"))
    table["splits"][0]["U"] += 1
    (copy / "statistics.json").write_text(json.dumps(table), encoding="utf-8")
    faults = {check["rule"]: check["faults"] for check in verify(copy)["checks"]}
    assert wrong and faults["the drop that a question names took its answer"] == len(wrong)
    assert faults["a drop tells what it took"] >= 2 and faults["the tables count what is there"] == 1


def test_a_form_that_cannot_be_read_is_a_fault_of_its_question(made: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(made, tmp_path / "copy")
    name = json.loads((copy / "ideal/test.jsonl").read_text(encoding="utf-8").splitlines()[0])["id"]
    spoilt = {"s_expression": "(JOIN lives_in"}
    rewrite(copy / "ideal/test.jsonl", lambda rows: [{**rows[0], **spoilt}, *rows[1:]])
    [check] = [check for check in verify(copy)["checks"] if check["rule"] == "every form runs"]
    assert check["faults"] == 1 and name in check["first"][0]


def test_an_overlay_that_carries_its_base_can_be_moved_alone(inputs: tuple[Path, Path], tmp_path: Path) -> None:
    here = tmp_path / "here"
    shutil.copytree(inputs[0], here / "kg")
    write_benchmark(here / "made", here / "kg", inputs[1])
    overlay = here / "made" / "kg"
    digest, rows = content_digest(overlay), triples(overlay)
    carry_base(overlay)
    shutil.rmtree(here / "kg")
    moved = overlay.rename(tmp_path / "there")
    with KgStore.open(moved) as store:
        assert store.base == (moved / "volatile" / "base" / "kg.duckdb").resolve()
    assert (content_digest(moved), triples(moved)) == (digest, rows) and rows
    shutil.rmtree(moved / "volatile" / "base")
    with pytest.raises(ArtifactError, match="is not at .* any more; put it there"):
        KgStore.open(moved)


def triples(graph: Path) -> list[tuple[int, ...]]:
    with KgStore.open(graph) as store:
        return store.connection.execute("SELECT id, head, relation, tail FROM triples ORDER BY id").fetchall()


def test_answers_without_forms_are_no_claim_that_there_is_no_form(made: Path, tmp_path: Path) -> None:
    benchmark = read_benchmark(made)
    path = tmp_path / "predicted.jsonl"
    test = [row for row in benchmark.questions if row.split == "test"]
    path.write_text("".join(json.dumps({"id": row.id, "answers": ["wrong"]}) + "\n" for row in test), encoding="utf-8")
    assert check_predicted(benchmark, read_predicted(path), "test") == 0
    rows = table(benchmark, read_predicted(path))
    assert all(row["EM"] == row["F1(R)"] == row["F1(L)"] == 0.0 for row in rows)
    path.write_text("".join(json.dumps({"id": row.id, "s_expression": None}) + "\n" for row in test), encoding="utf-8")
    [unknown] = [row for row in table(benchmark, read_predicted(path)) if row["group"] == "NK"]
    assert unknown["EM"] == unknown["F1(L)"] == 100.0


def test_predictions_of_other_questions_are_refused_and_values_are_written_as_answers_are(
    made: Path, tmp_path: Path
) -> None:
    path = tmp_path / "predicted.jsonl"
    path.write_text('{"id": "nope", "answers": [true, 5.0, 2.5, "x"]}\n', encoding="utf-8")
    predicted = read_predicted(path)
    assert predicted["nope"].answers == {"yes", "5", "2.5", "x"}
    with pytest.raises(InputError, match="1 predictions are of no question of .*, as 'nope'"):
        check_predicted(read_benchmark(made), predicted, "test")
    with pytest.raises(InputError, match="no prediction is of the"):
        check_predicted(read_benchmark(made), {}, "test")


def test_questions_with_answers_only_are_refused(inputs: tuple[Path, Path], tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    rows = (inputs[1].parent / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    bare = [{k: v for k, v in json.loads(row).items() if k != "relation_path"} for row in rows]
    path.write_text("".join(json.dumps(row) + "\n" for row in bare), encoding="utf-8")
    questions = tmp_path / "questions"
    questions.mkdir()
    load(Workspace(questions), kg=inputs[0], options=QuestionsOptions(path=str(path)), seed=7)
    with pytest.raises(InputError, match="only answers are annotated"):
        build(Workspace(tmp_path), kg=inputs[0], questions=questions, options=AnswerabilityOptions(), seed=7)
