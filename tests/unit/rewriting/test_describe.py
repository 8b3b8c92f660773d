"""The describer of a system that answers while somebody waits says what the `write` stage writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from kgqa_core.config import LlmOptions, RewriterOptions
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.kg.store import KgStore
from kgqa_core.llm.models import Models
from kgqa_core.llm.protocol import Completion
from kgqa_core.rewriting import describe, write
from kgqa_core.rewriting.describe import Describer
from kgqa_core.rewriting.request import SentenceRequest
from kgqa_core.types import Fact, Retrieved
from kgqa_core.workspace import Workspace
from tests.unit.rewriting.test_corpus import Fake, make_world

FACTS = [(0, 0, 3), (0, 1, 7), (1, 0, 40)]
"""Path, hop and triple."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_world(tmp_path_factory.mktemp("world"))


@pytest.fixture
def store(world: Path) -> Iterator[KgStore]:
    with KgStore.open(world / "kg") as opened:
        yield opened


def wrote(
    world: Path, at: Path, store: KgStore, model: Fake, options: RewriterOptions, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, str]:
    """The paragraph of the same facts by the stage and by the describer, which asks the same model."""
    question = read_questions(world / "questions")[0]
    rows = [
        (question.id, "hop_path", rank, 1.0, hop, triple, 1, path) for rank, (path, hop, triple) in enumerate(FACTS)
    ]
    names = ["question", "retriever", "rank", "score", "hop", "triple", "direction", "path"]
    for part in ("facts", "out"):
        (at / part).mkdir()
    pl.DataFrame(rows, schema=names, orient="row").write_parquet(at / "facts/facts.parquet")
    write.write(
        Workspace(at / "out", model=model),
        kg=world / "kg",
        questions=world / "questions",
        facts=at / "facts",
        rewriter=None,
        request=SentenceRequest(retriever="hop_path", format="rewritten", language="en"),
        options=options,
        llm=LlmOptions(),
    )
    table = pl.read_parquet(at / "out/knowledge.parquet").filter(pl.col("question") == question.id)
    monkeypatch.setattr(describe, "load_writer", lambda rewriter, options, llm, budget: model)
    facts = tuple(Fact(rank, 1.0, hop, triple, 1, path) for rank, (path, hop, triple) in enumerate(FACTS))
    opened = Describer.open(store, "rewritten", None, options, Models(LlmOptions()), "en")
    return table["text"][0], opened.describe([Retrieved(question.id, facts)])[0]


@pytest.mark.parametrize("wording", ["rra2023", "mvp2022"])
def test_an_untrained_model_is_asked_in_the_wording_of_the_options(
    world: Path, tmp_path: Path, store: KgStore, monkeypatch: pytest.MonkeyPatch, wording: str
) -> None:
    model = Fake(lambda prompt, seed: f"So much of {prompt.split('is: ')[-1]}")
    options = RewriterOptions(base="hf:any", adapt=False, wording=wording, on_unfaithful="keep")
    staged, answered = wrote(world, tmp_path, store, model, options, monkeypatch)
    assert answered == staged and "So much of" in answered
    sent = model.prompts[: len(model.prompts) // 2], model.prompts[len(model.prompts) // 2 :]
    assert sorted(sent[0]) == sorted(sent[1])
    assert all(("Describe the following data" in prompt) == (wording == "mvp2022") for prompt in model.prompts)


def test_what_a_model_says_in_refusing_is_no_text(
    world: Path, tmp_path: Path, store: KgStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Fake(lambda prompt, seed: Completion("I am sorry, I must not tell.", "refusal", 9, 9))
    staged, answered = wrote(world, tmp_path, store, model, RewriterOptions(on_unfaithful="keep"), monkeypatch)
    assert answered == staged and "sorry" not in answered and answered.startswith("(")
