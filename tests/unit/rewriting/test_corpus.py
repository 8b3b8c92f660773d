"""The corpus stage: what is drawn, told, checked, answered from, kept and counted."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from kgqa_core.config import CorpusOptions, KgOptions, LlmOptions
from kgqa_core.datasets.files.question import write_questions
from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.export import export
from kgqa_core.errors import QuestionFileError
from kgqa_core.kg.build import build
from kgqa_core.kg.store import KgStore
from kgqa_core.llm.protocol import Completion, GenerationParams
from kgqa_core.rewriting import corpus, validate
from kgqa_core.rewriting.corpus_table import CORPUS
from kgqa_core.rewriting.graphs import draw
from kgqa_core.store.artifacts import content_digest
from kgqa_core.types import Question
from kgqa_core.workspace import Workspace

TOWNS, FIRMS = 12, 24


@dataclass
class Fake:
    """A model that answers by a function of prompt and seed, and keeps what it was asked."""

    reply: Callable[[str, int | None], str | Completion]
    name: str = "fake"
    revision: str = "1"
    batch_sensitive: bool = False

    def __post_init__(self) -> None:
        self.prompts: list[str] = []

    def generate(self, prompts: Sequence[str], params: GenerationParams, on_result: Any = None) -> list[Completion]:
        self.prompts += prompts
        found = []
        for place, prompt in enumerate(prompts):
            output = self.reply(prompt, params.seed)
            found.append(
                output if isinstance(output, Completion) else Completion(output, "stop" if output else "empty", 10, 5)
            )
            if on_result is not None:
                on_result(place, found[-1])
        return found


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_world(tmp_path_factory.mktemp("world"))


def make_world(folder: Path) -> Path:
    """Firms in towns of regions, each founded by somebody; questions of one and two hops."""
    rows = [f"Town{n}\tlocated_in\tRegion{n % 3}" for n in range(TOWNS)]
    rows += [f"Firm{n}\tbased_in\tTown{n % TOWNS}" for n in range(FIRMS)]
    rows += [f"Firm{n}\tfounder\tPerson {n}" for n in range(FIRMS)] + ["Firm1\tfounder\tPerson 99"]
    (folder / "graph.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    for part in ("kg", "dkg", "questions", "work"):
        (folder / part).mkdir()
    build(Workspace(folder / "kg", folder / "work"), options=KgOptions(files=(str(folder / "graph.tsv"),)))
    export(Workspace(folder / "dkg"), kg=folder / "kg")
    with KgStore.open(folder / "kg") as store:
        ids = {key: i for key, (i,) in ((k, v) for k, v in store.resolve(_keys()).items())}
    questions = []
    for n in range(FIRMS):
        where, who, town = f"Firm{n}", [f"Person {n}", *(["Person 99"] if n == 1 else [])], f"Town{n % TOWNS}"
        split = "test" if n >= 20 else "train"
        questions += [
            _question(f"town-{n:02}", f"Where is {where}?", where, [town], ("based_in",), split, ids),
            _question(f"who-{n:02}", f"Who founded {where}?", where, who, ("founder",), split, ids),
            _question(f"who-again-{n:02}", f"By whom was {where} founded?", where, who, ("founder",), split, ids),
            _question(
                f"region-{n:02}", f"In which region is {where}?", where, [f"Region{n % TOWNS % 3}"],
                ("based_in", "located_in"), split, ids,
            ),
        ]  # fmt: skip
    firms = [f"Firm{n}" for n in (0, 12)]
    questions.append(_question("inverse", "Which firm is in Town0?", "Town0", firms, ("<inv>-based_in",), "train", ids))
    questions.append(_question("wrong", "Where is Firm0 really?", "Firm0", ["Town5"], ("based_in",), "train", ids))
    questions.append(replace(questions[0], id="no-path", relation_paths=(("nowhere",),), answers=(), answer_keys=()))
    questions.append(replace(questions[0], id="no-answer", answers=(), answer_keys=(), answer_names=()))
    write_questions(folder / "questions", questions)
    return folder


def _keys() -> list[str]:
    names = [f"Town{n}" for n in range(TOWNS)] + [f"Region{n}" for n in range(3)] + ["Person 99"]
    return names + [f"{kind}{n}" for n in range(FIRMS) for kind in ("Firm", "Person ")]


def _question(
    name: str, text: str, topic: str, answers: list[str], path: tuple[str, ...], split: str, ids: dict[str, int]
) -> Question:
    return Question(
        name, text, split, topic_keys=(topic,), topic_entities=(ids[topic],), answer_keys=tuple(answers),
        answers=tuple(ids[answer] for answer in answers), answer_names=tuple((answer,) for answer in answers),
        relation_paths=(path,), hops=len(path),
    )  # fmt: skip


@pytest.fixture
def run(
    world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[dict[str, Any], pl.DataFrame]]:
    """Runs the stage with fake models and returns its counts and table."""

    def once(
        teacher: Fake | None = None, reader: Fake | None = None, *, name: str = "out", seed: int = 3, **options: Any
    ) -> tuple[dict[str, Any], pl.DataFrame]:
        models = {"teacher": teacher, "reader": reader or Fake(answer)}
        monkeypatch.setattr(corpus, "load_model", lambda spec, llm, budget=None: models[spec])
        out = tmp_path / name
        out.mkdir()
        given = CorpusOptions(teacher="teacher" if teacher else "template", qa_model="reader", **options)
        counts = corpus.generate(
            Workspace(out, cache=tmp_path / f"cache-{name}"),
            kg=world / "kg",
            dkg=world / "dkg",
            questions=world / "questions",
            options=given,
            llm=LlmOptions(attempts=2),
            seed=seed,
        )
        return counts, pl.read_parquet(out / "corpus.parquet")

    return once


def answer(prompt: str, seed: int | None) -> str:
    """A QA model that finds the last word of the text, which is the tail of the last triple in `tell`."""
    text = prompt.partition("question: ")[2].partition(" Question: ")[0]
    return text.rstrip(".").rpartition(" is ")[2]


def tell(prompt: str, seed: int | None) -> str:
    """A teacher that tells each triple."""
    triples = prompt.partition("graph is: ")[2].removesuffix(". The sentence is:")
    parts = [part.split(", ") for part in triples.removeprefix("(").removesuffix(")").split(") (")]
    return " ".join(f"The {relation} of {head} is {tail}." for head, relation, tail in parts)


def test_sampling_is_seeded_and_takes_relation_paths_in_turn(world: Path) -> None:
    from kgqa_core.datasets.files.question import read_questions

    questions, dkg = read_questions(world / "questions"), Dkg.open(world / "dkg")
    with KgStore.open(world / "kg") as store:
        drawn = [draw(store, dkg, order, size=9, max_triples=20, seed=seed) for order, seed in
                 ((questions, 1), (questions[::-1], 1), (questions, 2))]  # fmt: skip
        everything = draw(store, dkg, questions, size=999, max_triples=20, seed=1)
    ids = [[graph.question.id for graph in each.graphs] for each in drawn]
    assert ids[0] == ids[1] != ids[2], "the order of the file does not matter, the seed does"
    paths = [graph.relation_path for graph in drawn[0].graphs]
    assert sorted({path: paths.count(path) for path in paths}.values()) == [1, 2, 3, 3], "the inverse has one question"
    assert set(ids[0]) < {graph.question.id for graph in everything.graphs}
    assert all(graph.question.split == "train" for graph in everything.graphs)
    assert everything.counts == {
        "train": 84, "without_path": 1, "without_answer": 1, "unreached": 1, "relation_paths": 4
    }  # fmt: skip


def test_gold_graphs_are_the_chains_of_the_gold_path_by_name(world: Path) -> None:
    from kgqa_core.datasets.files.question import read_questions

    with KgStore.open(world / "kg") as store:
        dkg, questions = Dkg.open(world / "dkg"), read_questions(world / "questions")
        found = draw(store, dkg, questions, size=999, max_triples=20, seed=1).graphs
        short = draw(store, dkg, questions, size=999, max_triples=1, seed=1).graphs
    graphs = {graph.question.id: graph for graph in found}
    assert graphs["region-01"].text == "(Firm1, based_in, Town1) (Town1, located_in, Region1)"
    assert graphs["who-01"].text == "(Firm1, founder, Person 1) (Firm1, founder, Person 99)"
    assert graphs["inverse"].text == "(Firm0, based_in, Town0) (Firm12, based_in, Town0)", "as the graph stores them"
    assert graphs["region-01"].relation_path == "based_in | located_in" and graphs["region-01"].hops == 2
    cut = {graph.question.id: graph for graph in short}
    assert cut["region-01"].text == graphs["region-01"].text, "the first chain is there whatever its length"
    assert cut["who-01"].text == "(Firm1, founder, Person 1)"


def test_only_texts_from_which_the_qa_model_finds_a_gold_answer_are_kept(
    run: Callable[..., tuple[dict[str, Any], pl.DataFrame]],
) -> None:
    wrong = Fake(lambda prompt, seed: "Town" if "Where" in prompt else answer(prompt, seed))
    counts, frame = run(Fake(tell), wrong)
    assert frame.schema == CORPUS
    verdicts = {path: set(part["verdict"]) for (path,), part in frame.group_by("relation_path")}
    # The published filter walked over the characters of the joined answers, and took `Town` for `Town3`.
    assert verdicts["based_in"] == {"QA wrong"}
    assert verdicts["founder"] == verdicts["based_in | located_in"] == {"kept"}
    bad = frame.filter(pl.col("relation_path") == "based_in")
    assert set(bad["qa_answer"]) == {"Town"} and bad["split"].null_count() == bad.height == 20
    assert frame.filter(pl.col("question") == "inverse")["qa_answer"].to_list() == ["Town0"]
    assert counts["rejected_QA wrong"] == 21
    assert counts["kept"] == 60 and counts["asked"] == 81 and counts["acceptance"] == round(60 / 81, 6)


@pytest.mark.parametrize("output", ["o", "T", "own", "Town", "Town1", "Person", "", "n 5", "Region"])
def test_a_wrong_answer_is_never_a_hit(run: Callable[..., tuple[dict[str, Any], pl.DataFrame]], output: str) -> None:
    counts, frame = run(Fake(tell), Fake(lambda prompt, seed: output), size=30)
    right = {f"town-{n:02}" for n in range(TOWNS * 2) if output == f"Town{n % TOWNS}"}
    assert set(frame.filter(pl.col("verdict") == "kept")["question"]) <= right
    assert counts["kept"] <= len(right)


def test_rejects_keep_their_reason(run: Callable[..., tuple[dict[str, Any], pl.DataFrame]]) -> None:
    faults: dict[str, str | Completion] = {
        "Firm1,": "",
        "Firm2,": Completion("I'm sorry, I cannot do that.", "stop", 10, 5),
        "Firm3,": Completion("", "refusal", 10, 1),
        "Firm4,": "The based_in of Firm4 is",
        "Firm5,": "%%% ###",
        "Firm6,": tell("graph is: (Firm6, founder, Person 6). The sentence is:", 0) + " It has 1,250 employees.",
        "Firm7,": "The founder of Firm7 is Person 7, a friend of Angela Merkel.",
        "Firm8,": Completion("The founder of Firm8 is Person 8.", "length", 10, 5),
        "Firm9,": Completion("", "error", error="status 500"),
    }

    def teach(prompt: str, seed: int | None) -> str | Completion:
        return next((fault for part, fault in faults.items() if f"({part}" in prompt), None) or tell(prompt, seed)

    faults["Firm1,"] = Completion("", "empty", 10, 0)
    counts, frame = run(Fake(teach), Fake(answer))
    who = frame.filter(pl.col("question").str.starts_with("who-0"))
    assert dict(zip(who["question"], who["verdict"], strict=True)) == {
        "who-00": "kept", "who-01": "teacher empty", "who-02": "teacher refused", "who-03": "teacher refused",
        "who-04": "teacher truncated", "who-05": "garbage", "who-06": "unfaithful", "who-07": "unfaithful",
        "who-08": "teacher truncated", "who-09": "teacher failed",
    }  # fmt: skip
    assert counts["rejected_unfaithful"] == frame.filter(pl.col("verdict") == "unfaithful").height
    spent = dict(zip(who["question"], who["spent"].to_list(), strict=True))
    assert spent["who-05"] == ["garbage", "garbage"], "two attempts were made"
    assert who.filter(pl.col("verdict") != "kept")["qa_answer"].null_count() == 9, "no answer was paid for"


def test_a_graph_of_several_questions_is_written_once_and_answered_for_each(
    run: Callable[..., tuple[dict[str, Any], pl.DataFrame]],
) -> None:
    teacher, reader = Fake(tell), Fake(answer)
    counts, frame = run(teacher, reader)
    assert len(teacher.prompts) == len(set(teacher.prompts)) == counts["texts"] == 61
    assert len(reader.prompts) == 81
    both = frame.filter(pl.col("question").is_in(["who-05", "who-again-05"]))
    assert both["pair"].n_unique() == 1 and both["verdict"].to_list() == ["kept", "kept"]
    assert both["split"].null_count() == 1, "training sees the pair once"
    assert both["teacher_tokens"].to_list() == [5, 0], "and it is paid once"
    assert counts["pairs"] == counts["train"] + counts["dev"]


def test_the_most_faithful_text_that_is_answered_from_is_kept(
    run: Callable[..., tuple[dict[str, Any], pl.DataFrame]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Candidates 1 and 2 are the more faithful ones; from 1 the QA model answers wrongly."""
    numbers: dict[int | None, int] = {}
    monkeypatch.setattr(validate, "faithfulness", lambda text, named, language: 0.5 if text[:2] == "Ah" else 1.0)

    def teach(prompt: str, seed: int | None) -> str:
        return ("Ah: ", "Well: ", "So: ")[numbers.setdefault(seed, len(numbers))] + tell(prompt, seed)

    reader = Fake(lambda prompt, seed: "no" if "Well" in prompt else answer(prompt, seed))
    counts, frame = run(Fake(teach), reader, candidates=3)
    region = frame.filter(pl.col("question") == "region-07").sort("candidate")
    assert region["verdict"].to_list() == ["spare", "QA wrong", "kept"]
    assert len(reader.prompts) == 2 * 81 + 1, "the third is asked for where the second was no better"
    assert counts["kept"] == counts["spare"] == 80


def test_dev_and_train_share_no_graph(run: Callable[..., tuple[dict[str, Any], pl.DataFrame]]) -> None:
    counts, frame = run(dev_share=0.3)
    graphs = {
        split: {tuple(sorted(row)) for row in part["triples"].to_list()} for (split,), part in frame.group_by("split")
    }
    assert graphs["train"] and graphs["dev"] and not graphs["train"] & graphs["dev"]
    whole = len(graphs["train"] | graphs["dev"])
    assert len(graphs["dev"]) == round(0.3 * whole)
    _, other = run(dev_share=0.3, name="other", seed=4)
    assert set(other.filter(pl.col("split") == "dev")["pair"]) != set(frame.filter(pl.col("split") == "dev")["pair"])


def test_the_same_seed_makes_the_same_bytes(run: Callable[..., Any], tmp_path: Path) -> None:
    for name in ("first", "second"):
        run(Fake(tell), name=name, candidates=2)
    assert content_digest(tmp_path / "first") == content_digest(tmp_path / "second")


def test_the_template_teacher_writes_what_the_checks_accept(
    run: Callable[..., tuple[dict[str, Any], pl.DataFrame]],
) -> None:
    everything = Fake(lambda prompt, seed: prompt.partition("question: ")[2].partition(" Question: ")[0])
    counts, frame = run(None, everything, candidates=3)
    assert counts["kept"] == counts["asked"] == 81 and set(frame["verdict"]) == {"kept", "spare"}
    assert set(frame["teacher"]) == {"template"} and set(frame["faithfulness"]) == {1.0}
    texts = frame.filter(pl.col("question") == "who-03")["text"]
    assert texts.n_unique() == 3, "the candidates are worded differently"
    assert frame["teacher_tokens"].sum() == 0


def test_graphs_of_test_questions_in_the_corpus_are_counted(
    run: Callable[..., tuple[dict[str, Any], pl.DataFrame]],
) -> None:
    counts, _ = run(Fake(tell))
    # Firms 20 to 23 are test; their founders and towns are nobody else's graph.
    assert counts["shared_with_test"] == 0 and counts["test_questions_shared"] == 0


def test_acceptance_is_told_by_relation_path(run: Callable[..., Any], tmp_path: Path) -> None:
    run(Fake(tell), Fake(lambda prompt, seed: "no" if "Where" in prompt else answer(prompt, seed)))
    table = pl.read_parquet(tmp_path / "out/acceptance.parquet")
    rows = {row["relation_path"]: row for row in table.iter_rows(named=True)}
    assert rows["based_in"]["acceptance"] == 0.0 and json.loads(rows["based_in"]["rejected"]) == {"QA wrong": 20}
    assert rows["founder"]["asked"] == rows["founder"]["kept"] == 40 and rows["founder"]["rejected"] == "{}"
    assert rows["based_in | located_in"]["hops"] == 2 and rows["founder"]["qa_tokens"] == 40 * 15
    assert rows["founder"]["teacher_tokens"] == 20 * 15, "twenty graphs for forty questions"


def test_without_gold_graphs_the_error_says_why(world: Path, tmp_path: Path) -> None:
    from kgqa_core.datasets.files.question import read_questions

    (tmp_path / "questions").mkdir()
    only = [question for question in read_questions(world / "questions") if question.id in ("no-path", "no-answer")]
    write_questions(tmp_path / "questions", only)
    with pytest.raises(QuestionFileError, match=r"2 training questions \(1 have no gold path, 1 no answer"):
        corpus.generate(
            Workspace(tmp_path),
            kg=world / "kg",
            dkg=world / "dkg",
            questions=tmp_path / "questions",
            options=CorpusOptions(),
            llm=LlmOptions(),
            seed=1,
        )


GRAPH = [("Mary, Queen of Scots", "spouse", "CVT1"), ("CVT1", "person", "Lord Darnley"), ("CVT1", "from", "1565")]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Mary, Queen of Scots married Lord Darnley in 1565.", None),
        ("mary queen of scots was married from 1565", None),
        ("Mary, Queen of Scots married Lord Darnley", None),
        ("  ", "teacher empty"),
        ("I’m sorry, but I can't help with Lord Darnley.", "teacher refused"),
        ("As an AI language model I know Lord Darnley.", "teacher refused"),
        ("Somebody married somebody.", "garbage"),
        ("CVT1.", "garbage"),
        ("Mary, Queen of Scots married Lord Darnley in", "teacher truncated"),
        ("Mary, Queen of Scots married Lord Darnley in 1566.", "unfaithful"),
        ("Mary, Queen of Scots married Lord Darnley and Earl Bothwell.", "unfaithful"),
    ],
)
def test_texts_are_rejected_for_the_first_fault_that_they_have(text: str, reason: str | None) -> None:
    assert validate.reject(text, GRAPH) == reason


def test_chinese_texts_are_checked_too() -> None:
    graph = [("曹缘", "出生地", "长沙")]
    assert validate.reject("曹缘出生于长沙。", graph, "zh") is None
    assert validate.reject("抱歉，我无法完成。", graph, "zh") == "teacher refused"
    assert validate.reject("他出生在那里。", graph, "zh") == "garbage"
    assert validate.reject("曹缘出生于长沙，1995年", graph, "zh") in ("teacher truncated", "unfaithful")
