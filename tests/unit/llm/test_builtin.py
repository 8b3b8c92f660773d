"""The packaged reader: its size, its honesty about what it is, and that it copies answers from facts."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from safetensors import safe_open

from kgqa_core.config import LlmOptions
from kgqa_core.errors import ModelError
from kgqa_core.llm.builtin import model as package
from kgqa_core.llm.factory import load_model
from kgqa_core.llm.hf import HFModel
from kgqa_core.llm.protocol import GenerationParams
from kgqa_core.prompts import answer_prompt, rewrite_prompt, spaced_triples, triple_form
from tests.support.device import DEVICE
from tools.builtin_reader.batches import SECOND, Recipe, held_out
from tools.builtin_reader.evaluate import judge
from tools.builtin_reader.sentences import tell

FACTS = [
    ("Zorvelnik", "capital", "Tambarosk"),
    ("Zorvelnik", "currency", "Ulmer dorin"),
    ("Zorvelnik", "shares border with", "Quelland"),
    ("Zorvelnik", "shares border with", "Ostervany"),
    ("Zorvelnik", "calling code", "+973"),
    ("Zorvelnik", "<inv>-country", "Pelkamund"),
    ("Tambarosk", "time zone", "Vorland/Tambarosk"),
]


@pytest.fixture(scope="module")
def reader() -> HFModel:
    model = load_model("builtin", LlmOptions(device=DEVICE))
    assert isinstance(model, HFModel)
    return model


def test_it_is_as_small_as_we_say() -> None:
    with safe_open(package.WEIGHTS / "model.safetensors", framework="pt") as file:
        parameters = 0
        for key in file.keys():  # noqa: SIM118 - not a mapping
            size = 1
            for length in file.get_slice(key).get_shape():
                size *= length
            parameters += size
    assert 4_000_000 <= parameters <= 8_000_000
    assert sum(path.stat().st_size for path in package.WEIGHTS.glob("*.safetensors")) <= 16 * 2**20
    kinds = {path.suffix for path in package.WEIGHTS.iterdir()}
    assert kinds <= {".safetensors", ".json"}, "nothing pickled"


def test_it_is_a_llama_with_its_name_and_revision(reader: HFModel) -> None:
    assert reader.name == "builtin" and not reader.seq2seq
    assert reader.model.config.model_type == "llama"
    assert len(reader.revision) == 16
    assert next(reader.model.parameters()).dtype.is_floating_point


def test_it_says_how_it_was_trained() -> None:
    facts = json.loads((package.WEIGHTS / "training.json").read_text("utf-8"))
    assert facts["step"] > 0 and facts["tokens"] > 0 and 0 <= facts["held_out"]["all"] <= 1
    assert (
        facts["recipe"] == json.loads(json.dumps(asdict(SECOND))) and facts["base"]["recipe"]["seed"] == Recipe().seed
    )
    text = (package.WEIGHTS / "training.json").read_text() + (package.WEIGHTS / "config.json").read_text()
    assert "/tmp" not in text and "/work" not in text


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What is the capital of Zorvelnik?", "Tambarosk"),
        ("Which currency is used in Zorvelnik?", "Ulmer dorin"),
        ("What is the calling code of Zorvelnik?", "+973"),
        ("What is the time zone of the capital of Zorvelnik?", "Vorland/Tambarosk"),
    ],
)
def test_it_copies_the_answer_that_is_asked_for(reader: HFModel, question: str, answer: str) -> None:
    completion = reader.generate([answer_prompt(question, triple_form(FACTS))], GenerationParams())[0]
    assert (completion.text.strip(), completion.finish) == (answer, "stop")


@pytest.mark.parametrize("template", ["sen2023", "rra2023"])
def test_it_reads_sentences_with_either_prompt(reader: HFModel, template: str) -> None:
    pairs = [
        ("What is the capital of Zorvelnik?", "Tambarosk"),
        ("What is the calling code of Zorvelnik?", "+973"),
        ("What is the currency of Zorvelnik?", "Ulmer dorin"),
    ]
    context = tell(FACTS, chinese=False)
    prompts = [answer_prompt(question, context, template) for question, _ in pairs]
    texts = [made.text.strip() for made in reader.generate(prompts, GenerationParams())]
    assert texts == [answer for _, answer in pairs]


def test_it_tells_triples_as_sentences(reader: HFModel) -> None:
    groups = [
        [("Zorvelnik", "place.country.capital", "Tambarosk")],
        [("Zorvelnik", "<inv>-located_in", "Pelkamund"), ("Pelkamund", "population", "34012")],
        [("沈岭", "出生地", "河州市"), ("沈岭", "国籍", "乌兰国")],
    ]
    prompts = [
        rewrite_prompt(spaced_triples(facts), lang) for facts, lang in zip(groups, ("en", "en", "zh"), strict=True)
    ]
    made = reader.generate(prompts, GenerationParams(max_new_tokens=96))
    for facts, each, chinese in zip(groups, made, (False, False, True), strict=True):
        assert judge(facts, each.text.strip(), chinese=chinese).faithful, each.text


def test_it_copies_chinese(reader: HFModel) -> None:
    context = triple_form([("沈岭", "出生地", "河州市"), ("沈岭", "国籍", "乌兰国")])
    texts = [
        each.text.strip()
        for each in reader.generate(
            [answer_prompt(f"沈岭的{word}是什么", context) for word in ("国籍", "出生地")], GenerationParams()
        )
    ]
    assert texts == ["乌兰国", "河州市"]


def test_it_reads_held_out_examples(reader: HFModel) -> None:
    """Exact answers on samples that training did not draw; the figures of the model card are higher."""
    right: dict[str, list[bool]] = {}
    examples = [pair for pair in held_out(Recipe(), (), 12) if pair[0] in ("1-hop", "2-hop")]
    outputs = reader.generate([sample.prompt() for _, sample in examples], GenerationParams())
    for (family, sample), completion in zip(examples, outputs, strict=True):
        right.setdefault(family, []).append(completion.text.strip() == sample.items[0][2])
    assert sum(right["1-hop"]) >= 10, right
    assert sum(right["2-hop"]) >= 6, right


def test_without_facts_it_is_short_and_knows_nothing(reader: HFModel) -> None:
    texts = [
        completion.text.strip()
        for completion in reader.generate(
            [answer_prompt(f"What is the {word} of Zorvelnik?") for word in ("capital", "currency", "time zone")],
            GenerationParams(),
        )
    ]
    assert texts == ["unknown"] * 3


def test_it_writes_the_same_in_batches_and_alone(reader: HFModel) -> None:
    prompts = [sample.prompt() for _, sample in held_out(Recipe(), (), 2)]
    together = reader.generate(prompts, GenerationParams())
    assert together == [reader.generate([prompt], GenerationParams())[0] for prompt in prompts]


def test_missing_weights_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(package, "WEIGHTS", tmp_path)
    with pytest.raises(ModelError, match="install the package again"):
        load_model("builtin", LlmOptions())
