"""A stage's work in parts is the stage's work: same rows, same counts, whatever the number of parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from kgqa_core.answering import answer as answering
from kgqa_core.config import AnsweringOptions, BudgetOptions, LlmOptions, RewriterOptions
from kgqa_core.errors import ArtifactError, BudgetReached, InputError
from kgqa_core.kg.verbalise import write_knowledge
from kgqa_core.llm import paid
from kgqa_core.llm.budget import Budget
from kgqa_core.llm.cache import FILE
from kgqa_core.llm.protocol import Completion, GenerationParams, OnResult
from kgqa_core.rewriting import write as writing
from kgqa_core.rewriting.request import SentenceRequest
from kgqa_core.store.shards import add_counts, share
from kgqa_core.workspace import Workspace
from tests.support.chat_server import ChatServer
from tests.support.divided import Made, World, divided, make_world, whole
from tests.support.examples import examples

QUICK = examples(8, suppress_health_check=[HealthCheck.function_scoped_fixture])


def merge_answers(out: Path, parts: Sequence[Path]) -> Mapping[str, Any]:
    return answering.merge(Workspace(out), parts)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def knowledge(world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("knowledge")
    write_knowledge(Workspace(folder), kg=world.kg, facts=world.facts, questions=world.questions)
    return folder


class Touchy:
    """A model whose answers show all prompts that it was asked together, as a local model's last bits may."""

    name, revision, batch_sensitive = "touchy", "1", True

    def generate(
        self, prompts: Sequence[str], params: GenerationParams,
        on_result: OnResult | None = None,
    ) -> list[Completion]:  # fmt: skip
        together = sum(map(len, prompts))
        out = []
        for place, prompt in enumerate(prompts):
            finish: Any = "stop" if len(prompt) % 7 else "error"
            out.append(Completion(f"{together} {len(prompt)}. Then more.", finish, len(prompt.split()), 5))
            if on_result is not None:
                on_result(place, out[-1])
        return out


@given(st.data())
def test_shares_follow_each_other_and_never_cut_what_belongs_together(data: st.DataObject) -> None:
    total = data.draw(st.integers(0, 60))
    inner = data.draw(st.sets(st.integers(1, max(1, total - 1)), max_size=20)) if total > 1 else set()
    starts, parts = sorted({0, *inner}), data.draw(st.integers(1, 30))
    own = [share((number, parts), starts, total) for number in range(parts)]
    assert [place for each in own for place in range(total)[each]] == list(range(total))
    assert all(each.start in (*starts, total) and each.stop in (*starts, total) for each in own)
    pieces = [sum(each.start <= start < each.stop for start in starts) for each in own]
    assert total == 0 or max(pieces) - min(pieces) <= 1


def test_a_part_that_cannot_be_is_named() -> None:
    with pytest.raises(InputError, match="part 3 of 3"):
        share((3, 3), [0], 5)


def test_counts_are_added_by_name() -> None:
    assert add_counts([{"a": 1, "b": {"x": 2}}, {"a": 2, "b": {"y": 1}}]) == {"a": 3, "b": {"x": 2, "y": 1}}


def answered(world: World, knowledge: Path | None, cache: Path | None, model: Any, **more: Any) -> Any:
    def fill(out: Path, part: Any = None) -> Any:
        return answering.answer(
            Workspace(
                out, out / "volatile" / str(part), cache=cache, budget=more.get("budget"), part=part, model=model
            ),
            questions=world.questions,
            knowledge=knowledge,
            seed=7,
            name="random/triples" if knowledge is not None else "none/none",
            options=more.get("options") or AnsweringOptions(),
            llm=more.get("llm") or LlmOptions(),
        )

    return fill


@QUICK
@given(parts=st.integers(1, 40), group=st.integers(1, 30), bare=st.booleans())
def test_answers_in_any_number_of_parts_are_those_of_the_whole(
    world: World, knowledge: Path, tmp_path_factory: pytest.TempPathFactory, parts: int, group: int, bare: bool
) -> None:
    folder = tmp_path_factory.mktemp("answers")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paid, "GROUP", group)
        fill = answered(world, None if bare else knowledge, None, Touchy())
        once = whole(folder / "whole", fill)
        assert divided(folder / "parts", fill, merge_answers, parts) == once
        assert once.counts["finish"].keys() >= {"stop"}


def test_answers_of_a_group_are_others_when_the_group_is_cut(
    world: World, knowledge: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill = answered(world, knowledge, None, Touchy())
    monkeypatch.setattr(paid, "GROUP", 8)
    once = whole(tmp_path / "whole", fill)
    monkeypatch.setattr(paid, "GROUP", 5)
    assert divided(tmp_path / "parts", fill, merge_answers, 3) != once


def test_answers_of_the_built_in_model_in_parts_are_those_of_the_whole(
    world: World, knowledge: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paid, "GROUP", 4)
    options = AnsweringOptions(limit=10, max_new_tokens=3)
    fill = answered(world, knowledge, None, None, options=options, llm=LlmOptions(batch_tokens=256))
    assert divided(tmp_path / "parts", fill, merge_answers, 3) == whole(tmp_path / "whole", fill)


def test_answers_of_an_endpoint_in_parts_cost_and_say_what_the_whole_does(
    world: World, knowledge: Path, tmp_path: Path
) -> None:
    options = AnsweringOptions(answerer="openai:m", limit=20)
    made: list[Made] = []
    sent = []
    for parts in (None, 3):
        with ChatServer(reply=lambda prompt: f"answer {len(prompt)}") as server:
            llm, cache = LlmOptions(base_url=server.base_url), tmp_path / f"cache{parts}"
            cache.mkdir()
            fill = answered(world, knowledge, cache, None, options=options, llm=llm)
            name = tmp_path / f"out{parts}"
            made.append(divided(name, fill, merge_answers, parts) if parts else whole(name, fill))
            sent.append(sorted(server.prompts))
    assert made[0] == made[1]
    assert sent[0] == sent[1] and len(set(sent[0])) == len(sent[0])


def test_parts_that_share_a_ledger_keep_to_the_budget_together(world: World, knowledge: Path, tmp_path: Path) -> None:
    limits = BudgetOptions(max_calls=9)
    with ChatServer(reply=lambda prompt: "answer") as server:
        reached = 0
        for number in range(4):
            budget = Budget(limits, {}, tmp_path / FILE, "answers")
            options = AnsweringOptions(answerer="openai:m", limit=20)
            fill = answered(
                world, knowledge, tmp_path, None, options=options, llm=LlmOptions(base_url=server.base_url),
                budget=budget,
            )  # fmt: skip
            (tmp_path / f"part{number}").mkdir()
            try:
                fill(tmp_path / f"part{number}", part=(number, 4))
            except BudgetReached:
                reached += 1
        assert len(server.prompts) == 9
    assert reached == 3, "two parts of five calls, the second cut short, and then nothing"


def written(world: World, format: str, model: Any, **more: Any) -> dict[str, Any]:
    return {
        "kg": world.kg, "questions": world.questions, "facts": world.facts, "rewriter": None,
        "request": SentenceRequest(retriever="random", format=format, split="test", seed=7),
        "options": RewriterOptions(), **more,
    }  # fmt: skip


@pytest.mark.slow
@QUICK
@given(parts=st.integers(1, 40), group=st.integers(1, 30), format=st.sampled_from(writing.FORMATS))
def test_sentences_in_any_number_of_parts_are_those_of_the_whole(
    world: World, tmp_path_factory: pytest.TempPathFactory, parts: int, group: int, format: str
) -> None:
    folder = tmp_path_factory.mktemp("sentences")
    arguments = written(world, format, Touchy())

    def fill(out: Path, part: Any = None) -> Any:
        return writing.write(Workspace(out, part=part, model=Touchy()), **arguments, llm=LlmOptions())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paid, "GROUP", group)
        once = whole(folder / "whole", fill)
        joined = divided(
            folder / "parts", fill, lambda out, parts: writing.merge(Workspace(out), parts, **arguments), parts
        )
    assert joined == once
    assert once.counts["groups"] > 20


def test_a_part_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(ArtifactError, match="not a part"):
        answering.merge(Workspace(tmp_path / "out"), [tmp_path])
