"""Pretrained encoders and language models take the places of the scratch ones."""

from __future__ import annotations

import pytest
import torch

from kgqa_core.config import GeneratorOptions, RngOptions
from kgqa_core.errors import ModelError
from kgqa_core.logic.parser import parse
from kgqa_core.papers.grailqability.parsing.examples import read_examples
from kgqa_core.papers.grailqability.parsing.rng import generate
from kgqa_core.papers.grailqability.parsing.rng.generate import Prompt, prompt_of
from kgqa_core.papers.grailqability.parsing.rng.parse import predict
from kgqa_core.papers.grailqability.parsing.rng.train import train
from kgqa_core.workspace import Workspace
from tests.support.device import DEVICE
from tests.support.models import save_causal, save_classifier, save_seq2seq

ON = torch.device(DEVICE)
FORMS = [parse(f"(JOIN (R r{number}) <[M1]>)") for number in range(4)]
PROMPTS = [prompt_of(f"what about {number} of [M1]", FORMS[::-1], FORMS[number]) for number in range(4)]


@pytest.mark.slow
def test_a_pretrained_encoder_reads_question_and_form_as_one_text(world, tmp_path):
    model = save_classifier(tmp_path / "bert")
    options = RngOptions(
        encoder=str(model), epochs=1, hard_negative_epochs=1, negatives=5, preselected_forms=5, device=DEVICE
    )
    for name in ("parser", "parsed"):
        (tmp_path / name).mkdir()
    counts = train(Workspace(tmp_path / "parser"), kg=world.kg, examples=world.examples, options=options, seed=3)
    counts_of_parse = predict(
        Workspace(tmp_path / "parsed"),
        kg=world.kg,
        examples=world.examples,
        parser=tmp_path / "parser",
        options=options,
    )
    examples = [one for one in read_examples(world.examples) if one.split != "train"]
    assert counts["epochs"] == [1, 1] and counts_of_parse["parsed"] == len(examples)


@pytest.mark.slow
@pytest.mark.parametrize("save", [None, save_causal, save_seq2seq])
def test_a_generator_learns_is_stored_and_writes_the_same_again(tmp_path, save):
    model = "scratch" if save is None else str(save(tmp_path / "model"))
    options = GeneratorOptions(enabled=True, model=model, epochs=1, width=32, layers=1, beam=2, max_tokens=40)
    workspace = Workspace(tmp_path / "stored", tmp_path / "work")
    generator, progress = generate.fit(workspace, PROMPTS, PROMPTS[:2], options, 3, ON, checkpoint_seconds=30.0)
    assert progress.epoch == 1 and "dev" in {row[2] for row in progress.curve}
    generate.LONGEST, before = 6, generate.LONGEST
    try:
        texts = [prompt.text for prompt in PROMPTS] * 2
        written = generator.write(texts, options)
        generate.save(tmp_path / "stored", generator)
        assert generate.load(tmp_path / "stored", ON).write(texts, options) == written
    finally:
        generate.LONGEST = before
    assert [len(own) for own in written] == [2] * 8 and written[:4] == written[4:]
    assert all(score <= 0 for own in written for _, score in own)


def test_a_scratch_generator_learns(tmp_path):
    options = GeneratorOptions(enabled=True, epochs=25, width=32, layers=1, learning_rate=3e-3)
    _, progress = generate.fit(Workspace(tmp_path), PROMPTS, PROMPTS, options, 3, ON, checkpoint_seconds=30.0)
    losses = [row[4] for row in progress.curve if row[2] == "dev"]
    assert losses[-1] < 0.5 * losses[0]


def test_what_is_no_language_model_is_refused_in_words():
    with pytest.raises(ModelError, match=r"parsing\.rng\.generator\.model 'no/such/place' cannot be loaded"):
        generate.new_generator([Prompt("what")], GeneratorOptions(enabled=True, model="no/such/place"), ON)
