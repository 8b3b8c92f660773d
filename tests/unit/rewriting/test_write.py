"""The stage that puts facts into words: groups, prompts, what happens to unfaithful sentences, resuming."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from kgqa_core.config import Endpoint, KgOptions, LlmOptions, RewriterOptions
from kgqa_core.datasets.files.question import write_questions
from kgqa_core.errors import ArtifactError, GraphMismatch, InputError
from kgqa_core.kg.build import build
from kgqa_core.kg.store import KgStore
from kgqa_core.kg.verbalise import KNOWLEDGE
from kgqa_core.llm import paid
from kgqa_core.llm.factory import load_model
from kgqa_core.llm.forecast import CHAT, Pilot, Recorder
from kgqa_core.llm.protocol import Completion, GenerationParams, OnResult
from kgqa_core.llm.tokens import counter
from kgqa_core.prompts import rewrite_prompt
from kgqa_core.rewriting import paragraphs
from kgqa_core.rewriting.groups import MOST, TripleGroup, read_groups
from kgqa_core.rewriting.request import SentenceRequest
from kgqa_core.rewriting.write import SENTENCES, write
from kgqa_core.types import Question
from kgqa_core.workspace import Workspace
from tests.support.chat_server import ChatServer

TRIPLES = [
    ("Ada", "works for", "Acme"),
    ("Acme", "based in", "Oslo"),
    ("Oslo", "capital of", "Norway"),
    ("Bob", "works for", "Acme"),
    ("Ada", "marriage", "_:m"),
    ("_:m", "spouse", "Carl"),
    ("_:m", "year", "1835"),
    *(("Dora", "likes", f"Thing {number}") for number in range(25)),
]
FACTS: dict[str, pl.DataType] = {
    "question": pl.String(), "retriever": pl.String(), "rank": pl.Int32(), "score": pl.Float64(), "path": pl.Int32(),
    "hop": pl.Int32(), "triple": pl.Int64(), "direction": pl.Int8(),
}  # fmt: skip
WrittenText = Callable[[str], Completion]


class Writer:
    """A rewriter that tells each triple of its prompt in a sentence and counts what it was asked."""

    name, revision, batch_sensitive = "writer", "1", False

    def __init__(self, reply: WrittenText | None = None, die_after: int | None = None) -> None:
        self.reply, self.die_after, self.prompts = reply or plain, die_after, list[str]()

    def generate(
        self, prompts: Sequence[str], params: GenerationParams,
        on_result: OnResult | None = None,
    ) -> list[Completion]:  # fmt: skip
        out = []
        for place, prompt in enumerate(prompts):
            if self.die_after is not None and len(self.prompts) >= self.die_after:
                raise KeyboardInterrupt
            self.prompts.append(prompt)
            out.append(self.reply(prompt))
            if on_result:
                on_result(place, out[-1])
        return out


def sentences_of(prompt: str) -> list[str]:
    return [
        f"{head} {relation} {tail}." for head, relation, tail in re.findall(r"\(([^,]+), ([^,]+), ([^)]+)\)", prompt)
    ]


def plain(prompt: str) -> Completion:
    return Completion(" ".join(sentences_of(prompt)), "stop", 7, 3)


class World:
    """A graph, three questions, and facts that a test writes."""

    def __init__(self, folder: Path, kg: Path) -> None:
        self.folder, self.kg, self.runs = folder, kg, 0
        for name in ("questions", "facts"):
            (folder / name).mkdir()
        write_questions(folder / "questions", [Question(id=name, text=f"{name}?") for name in ("q1", "q2", "q3")])
        with KgStore.open(kg) as store:
            stored = store.triples(range(len(TRIPLES)))
            names = store.names({end for head, _, tail in stored.values() for end in (head, tail)})
            relations = store.relation_names()
        self.ids = {
            (names[head], relations[relation], names[tail]): triple for triple, (head, relation, tail) in stored.items()
        }
        self.numbers = {row: self._id(row) for row in TRIPLES}

    def _id(self, row: tuple[str, str, str]) -> int:
        return next(
            i for (head, relation, tail), i in self.ids.items()
            if relation == row[1] and row[0] in (head, "_:m") and row[2] in (tail, "_:m")
        )  # fmt: skip

    def facts(self, rows: Sequence[tuple[str, int, int, int]], directions: dict[int, int] | None = None) -> None:
        """rows: question, path, hop, place in TRIPLES; their order is that of ranks."""
        ranks: dict[str, int] = {}
        full = []
        for question, path, hop, place in rows:
            rank = ranks[question] = ranks.get(question, -1) + 1
            direction = (directions or {}).get(place, 1)
            full.append((question, "hop_path", rank, 1.0, path, hop, self.numbers[TRIPLES[place]], direction))
        pl.DataFrame(full, schema=FACTS, orient="row").write_parquet(self.folder / "facts" / "facts.parquet")

    def places(self, ids: Sequence[int]) -> list[int]:
        back = {i: place for place, i in enumerate(self.numbers[row] for row in TRIPLES)}
        return [back[i] for i in ids]

    def write(self, format: str = "rewritten", **given: Any) -> tuple[dict[str, Any], dict[str, str], pl.DataFrame]:
        self.runs += 1
        out = self.folder / f"out{self.runs}"
        out.mkdir()
        fields = ("on_unfaithful", "wording", "max_new_tokens")
        options = RewriterOptions(**{key: given.pop(key) for key in fields if key in given})
        workspace = Workspace(out, cache=given.pop("cache", None), model=given.pop("model", None))
        counts = write(
            workspace,
            kg=self.kg,
            questions=self.folder / "questions",
            facts=self.folder / "facts",
            rewriter=given.pop("rewriter", None),
            request=SentenceRequest(retriever="hop_path", format=format, **given),
            options=options,
            llm=LlmOptions(),
        )
        knowledge = pl.read_parquet(out / "knowledge.parquet")
        assert dict(knowledge.schema) == KNOWLEDGE
        assert knowledge["question"].to_list() == ["q1", "q2", "q3"]
        sentences = pl.read_parquet(out / "sentences.parquet")
        assert dict(sentences.schema) == SENTENCES
        return counts, dict(zip(knowledge["question"], knowledge["text"], strict=True)), sentences


def _term(name: str) -> str:
    return name if name.startswith("_:") else f"<http://x/{name.replace(' ', '_')}>"


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    folder = tmp_path_factory.mktemp("graph")
    (folder / "kg").mkdir()
    lines = [
        f"{_term(head)} <http://x/{relation.replace(' ', '_')}> {_term(tail)} .\n" for head, relation, tail in TRIPLES
    ]
    (folder / "g.nt").write_text("".join(lines), encoding="utf-8")
    build(Workspace(folder / "kg"), options=KgOptions(files=(str(folder / "g.nt"),)))
    return folder / "kg"


@pytest.fixture
def world(tmp_path, graph):
    made = World(tmp_path, graph)
    made.facts([("q1", 0, 1, 0), ("q1", 0, 2, 1), ("q1", 1, 1, 3), ("q1", 1, 2, 1), ("q2", 0, 1, 0), ("q2", 0, 2, 1)])
    return made


def test_one_prompt_for_each_path_and_equal_ones_are_asked_once(world):
    writer = Writer()
    counts, texts, _ = world.write(model=writer)
    assert sorted(writer.prompts) == sorted(
        rewrite_prompt(text)
        for text in ("(Ada, works for, Acme) (Acme, based in, Oslo)", "(Bob, works for, Acme) (Acme, based in, Oslo)")
    )
    assert texts == {
        "q1": "Ada works for Acme. Acme based in Oslo. Bob works for Acme.",
        "q2": "Ada works for Acme. Acme based in Oslo.",
        "q3": "",
    }
    assert (counts["prompts"], counts["distinct_prompts"], counts["repeated"], counts["kept"]) == (3, 2, 1, 5)
    assert (counts["sentences"], counts["invented"], counts["untold"]) == (4, 0, 0)
    assert (counts["prompt_tokens"], counts["completion_tokens"], counts["with_facts"]) == (14, 6, 2)


def test_the_triples_behind_a_text_stand_in_its_order(world):
    _, _, sentences = world.write(model=Writer())
    knowledge = pl.read_parquet(world.folder / "out1" / "knowledge.parquet")
    assert [world.places(ids) for ids in knowledge["triples"].to_list()] == [[0, 1, 3], [0, 1], []]
    rows = sentences.filter(pl.col("question") == "q1").select("path", "text", "triples", "action").rows()
    assert [(path, text, world.places(ids), action) for path, text, ids, action in rows] == [
        (0, "Ada works for Acme.", [0], "kept"),
        (0, "Acme based in Oslo.", [1], "kept"),
        (1, "Bob works for Acme.", [3], "kept"),
        (1, "", [1], "repeated"),
    ]


def inventive(prompt: str) -> Completion:
    first, *rest = sentences_of(prompt)
    return Completion(f"{first[:-1]} with Zoe Quill. {' '.join(rest)}", "stop", 7, 3)


@pytest.mark.parametrize(
    ("policy", "text", "triples"),
    [
        ("replace", "(Ada, works for, Acme) Acme based in Oslo.", [0, 1]),
        ("drop", "Acme based in Oslo.", [1]),
        ("keep", "Ada works for Acme with Zoe Quill. Acme based in Oslo.", [0, 1]),
    ],
)
def test_a_sentence_that_invents_is_treated_as_the_policy_says(world, policy, text, triples):
    counts, texts, sentences = world.write(model=Writer(inventive), on_unfaithful=policy)
    assert texts["q2"] == text
    knowledge = pl.read_parquet(world.folder / "out1" / "knowledge.parquet")
    assert world.places(knowledge["triples"].to_list()[1]) == triples
    assert sentences.filter(pl.col("question") == "q2")["invented"].to_list()[0] == ["Zoe Quill"]
    assert (counts["unfaithful"], counts["invented"]) == (2, 2)


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        ("replace", "Ada works for Acme. (Acme, based in, Oslo)"),
        ("drop", "Ada works for Acme."),
        ("keep", "Ada works for Acme."),
    ],
)
def test_untold_triples_are_added_under_replace_alone(world, policy, text):
    counts, texts, _ = world.write(model=Writer(lambda p: Completion(sentences_of(p)[0], "stop")), on_unfaithful=policy)
    assert texts["q2"] == text
    assert counts["untold"] == 2
    assert counts["added"] == (2 if policy == "replace" else 0)


@pytest.mark.parametrize("finish", ["empty", "refusal", "error"])
def test_a_group_without_text_stands_in_triple_form_and_is_counted(world, finish):
    counts, texts, _ = world.write(
        model=Writer(lambda _: Completion("I cannot." if finish == "refusal" else "", finish))
    )
    assert texts["q1"] == "(Ada, works for, Acme), (Acme, based in, Oslo) (Bob, works for, Acme)"
    assert texts["q2"] == "(Ada, works for, Acme), (Acme, based in, Oslo)"
    assert (counts["no_text"], counts["failed"], counts["sentences"]) == (2, 3, 0)


@pytest.mark.parametrize(
    ("policy", "text"),
    [("replace", "(Guam, continent, Oceania)"), ("drop", ""), ("keep", "Guam is the continent of Guam.")],
)
def test_a_sentence_that_tells_no_triple_is_left_out_unless_all_is_kept(policy, text):
    group = TripleGroup(0, (5,), (("Guam", "continent", "Oceania"),))
    written = paragraphs.WrittenText("Guam is the continent of Guam.")
    draft = paragraphs.by_model(group, written, paragraphs.align(group, written, "en"), policy)
    assert paragraphs.join(paragraphs.assemble([draft]), "en") == text


def test_a_sentence_that_was_cut_short_leaves_its_triples(world):
    def cut(prompt: str) -> Completion:
        return Completion(f"{sentences_of(prompt)[0]} Acme based in Oslo and", "length")

    counts, texts, _ = world.write(model=Writer(cut))
    assert texts["q2"] == "Ada works for Acme. (Acme, based in, Oslo)"
    assert (counts["truncated"], counts["cut"]) == (2, 3)


def test_no_fact_is_lost_under_replace_whatever_the_model_writes(world):
    texts = [
        "Nonsense about Rome.",
        "Ada. Acme! Oslo?",
        "1999",
        "x" * 300,
        "Ada works for Acme Ada works for Acme",
        "。",
    ]
    for text in texts:
        _, _, _ = world.write(model=Writer(lambda _, text=text: Completion(text, "stop")))
        knowledge = pl.read_parquet(world.folder / f"out{world.runs}" / "knowledge.parquet")
        assert [sorted(world.places(ids)) for ids in knowledge["triples"].to_list()] == [[0, 1, 3], [0, 1], []]


def test_templates_need_no_model(world):
    counts, texts, sentences = world.write("template")
    assert "distinct_prompts" not in counts and counts["groups"] == 3
    assert "Ada" in texts["q1"] and "Bob" in texts["q1"] and texts["q3"] == ""
    assert set(sentences["action"]) <= {"kept", "repeated"}
    assert sentences["invented"].list.len().sum() == 0


def _groups(world: World, language: str | None = None) -> list[list[tuple[int, list[int]]]]:
    folder = world.folder
    found = read_groups(world.kg, folder / "questions", folder / "facts", "hop_path", language)
    return [[(group.path, world.places(group.triples)) for group in own] for _, _, own in found]


def test_facts_without_path_are_grouped_by_where_they_start(world):
    world.facts([("q1", -1, 1, 3), ("q1", -1, 1, 0), ("q1", -1, 2, 1), ("q1", -1, 1, 2)], {1: -1})
    assert _groups(world)[0] == [(-1, [3]), (-1, [0]), (-1, [1, 2])]


def test_what_hangs_on_a_nameless_node_follows_the_fact_that_leads_there(world):
    world.facts([("q1", -1, 2, 5), ("q1", -1, 1, 0), ("q1", -1, 1, 4), ("q1", -1, 2, 6)])
    assert _groups(world)[0] == [(-1, [5, 4, 6, 0])]
    _, texts, _ = world.write("template")
    assert "CVT" not in texts["q1"] and "Carl" in texts["q1"] and "1835" in texts["q1"]


def test_nameless_nodes_are_numbered_in_each_group(world):
    world.facts([("q1", 0, 1, 4), ("q1", 0, 2, 5), ("q1", 1, 1, 4), ("q1", 1, 2, 6)])
    writer = Writer()
    world.write(model=writer)
    assert sorted(writer.prompts) == sorted(
        rewrite_prompt(f"(Ada, marriage, CVT1) (CVT1, {tail})") for tail in ("spouse, Carl", "year, 1835")
    )


def test_a_long_group_is_told_in_parts_of_ten(world):
    world.facts([("q1", -1, 1, 7 + number) for number in range(25)])
    assert [len(triples) for _, triples in _groups(world)[0]] == [MOST, MOST, 5]


def test_a_path_that_walks_back_has_its_triple_once_and_pathless_facts_come_after(world):
    world.facts([("q1", -1, 1, 2), ("q1", 3, 1, 0), ("q1", 3, 2, 0), ("q1", -1, 1, 0), ("q1", 1, 1, 3)])
    assert _groups(world)[0] == [(1, [3]), (3, [0]), (-1, [2])]


def test_chinese_questions_are_asked_in_chinese(world):
    write_questions(world.folder / "questions", [Question(id=i, text="谁?", language="zh") for i in ("q1", "q2", "q3")])
    writer = Writer(lambda _: Completion("Ada works for Acme。Acme based in Oslo。", "stop"))
    _, texts, _ = world.write(model=writer)
    assert all(prompt.startswith("请将下列三元组") for prompt in writer.prompts)
    assert texts["q2"] == "Ada works for Acme。Acme based in Oslo。"
    english = Writer()
    world.write(model=english, language="en")
    assert all(prompt.startswith("Your task") for prompt in english.prompts)


def test_data_to_text_models_are_asked_in_their_own_wording(world):
    writer = Writer(lambda _: Completion("Ada works for Acme, which is based in Oslo.", "stop"))
    _, texts, _ = world.write(model=writer, wording="mvp2022")
    assert "Describe the following data: Ada | works for | Acme [SEP] Acme | based in | Oslo" in writer.prompts
    assert texts["q2"] == "Ada works for Acme, which is based in Oslo."


def test_a_killed_run_goes_on_and_ends_with_the_same_bytes(world, tmp_path):
    cache = tmp_path / "cache"
    cache.mkdir()
    undisturbed, *_ = world.write(model=Writer())
    with pytest.raises(KeyboardInterrupt):
        world.write(model=Writer(die_after=1), cache=cache)
    again = Writer()
    resumed, *_ = world.write(model=again, cache=cache)
    assert len(again.prompts) == 1 and resumed["cached"] == 1
    assert {**resumed, "cached": 0} == undisturbed
    for name in ("knowledge.parquet", "sentences.parquet", "meta.json"):
        assert (world.folder / "out1" / name).read_bytes() == (world.folder / "out3" / name).read_bytes()


def test_groups_of_a_batch_sensitive_model_are_asked_whole_again(world, tmp_path, monkeypatch):
    monkeypatch.setattr(paid, "GROUP", 2)
    cache = tmp_path / "cache"
    cache.mkdir()

    class Sensitive(Writer):
        batch_sensitive = True

    with pytest.raises(KeyboardInterrupt):
        world.write(model=Sensitive(die_after=1), cache=cache)
    again = Sensitive()
    world.write(model=again, cache=cache)
    assert len(again.prompts) == 2


def test_a_recorder_counts_the_prompts_that_are_asked_and_writes_what_the_template_would(world):
    writer = Writer()
    world.write(model=writer)
    recorder = Recorder("knowledge", "openai:m", LlmOptions(tokenizers={"openai:m": "builtin"}))
    _, recorded, _ = world.write(model=recorder)
    plan = recorder.plan(recorder, recorder)
    assert (plan.stage, plan.model, plan.calls) == ("knowledge", "openai:m", len(writer.prompts))
    count, counted = counter("builtin", LlmOptions())
    assert counted and plan.prompt_tokens == sum(count(prompt) + CHAT[1] for prompt in writer.prompts)
    lengths = [sum(len(text) for text in texts.values()) for texts in (recorded, world.write("template")[1])]
    assert 0.9 < lengths[0] / lengths[1] < 1.1


def test_a_pilot_of_the_texts_is_kept_and_left_out_of_the_forecast(world):
    cache = world.folder / "cache"
    with ChatServer(lambda prompt: " ".join(sentences_of(prompt))) as server:
        llm = LlmOptions(base_url=server.base_url)

        def record() -> Recorder:
            recorder = Recorder("knowledge", "openai:stub", llm)
            world.write(model=recorder, cache=cache)
            return recorder

        cold = record()
        for _ in range(2):
            world.write(model=Pilot(load_model("openai:stub", llm), 1, 7), cache=cache)
        warm = record()
        assert len(server.prompts) == 1 and (warm.calls, warm.cached) == (cold.calls - 1, 1)
        _, texts, _ = world.write(model=load_model("openai:stub", llm), cache=cache)
        assert len(server.prompts) == cold.calls > 1
        base = LlmOptions(endpoints={"base": Endpoint(base_url=server.base_url, api="completions")})
        _, same, _ = world.write(model=load_model("openai:stub@base", base), cache=cache)
        assert same == texts and len(server.prompts) == 2 * cold.calls and "prompt" in server.bodies[-1]


@pytest.mark.parametrize(
    ("question", "retriever", "triple", "fault", "message"),
    [
        ("q9", "hop_path", 0, ArtifactError, "'q9'"),
        ("q1", "hop_path", 999, GraphMismatch, "triple 999"),
        ("q1", "rigel", 0, ArtifactError, "facts of rigel"),
    ],
)
def test_facts_that_do_not_fit_are_refused(world, question, retriever, triple, fault, message):
    frame = pl.DataFrame([(question, retriever, 0, 1.0, 0, 1, triple, 1)], schema=FACTS, orient="row")
    frame.write_parquet(world.folder / "facts" / "facts.parquet")
    with pytest.raises(fault, match=message):
        world.write("template")


def test_an_unknown_format_and_missing_facts_say_what_to_do(world):
    with pytest.raises(InputError, match="did you mean 'template'"):
        world.write("templates")
    (world.folder / "facts" / "facts.parquet").unlink()
    with pytest.raises(ArtifactError, match="is missing"):
        world.write("template")


def test_a_trained_adapter_writes_over_the_builtin_model(world, tmp_path):
    """The wiring with real weights: a LoRA of random numbers writes something, and no fact is lost."""
    import torch

    from kgqa_core.nn.checkpoint import trainable
    from kgqa_core.rewriting.lora import load_base, put_lora, save_adapter

    options = RewriterOptions(lora_rank=2, lora_alpha=2, max_new_tokens=12)
    base = load_base(options, torch.device("cpu"))
    revision = base.revision
    torch.manual_seed(0)
    network = put_lora(base, options)
    with torch.no_grad():
        for parameter in trainable(network).values():
            parameter.normal_(0, 0.02)
    folder = tmp_path / "rewriter"
    folder.mkdir()
    save_adapter(folder, network, "builtin")
    (folder / "meta.json").write_text(f'{{"base": "builtin", "base_revision": "{revision}"}}\n', encoding="utf-8")
    counts, texts, _ = world.write(rewriter=folder, max_new_tokens=12)
    assert counts["distinct_prompts"] == 2 and counts["completion_tokens"] > 0
    for name in ("Ada", "Acme", "Oslo"):
        assert name in texts["q2"]
    _, again, _ = world.write(rewriter=folder, max_new_tokens=12)
    assert again == texts
