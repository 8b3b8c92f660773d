"""Retrieve and decode learns a small world's wordings, goes on after a kill, and says when there is no form."""

from __future__ import annotations

import math
import shutil
from dataclasses import replace

import pytest

from kgqa_core.config import DecodeOptions, KgOptions
from kgqa_core.errors import ArtifactError, TrainingError
from kgqa_core.kg.build import build
from kgqa_core.papers.grailqability.parsing.decode.parse import predict
from kgqa_core.papers.grailqability.parsing.decode.train import train
from kgqa_core.papers.grailqability.parsing.examples import ParseExample, read_examples, write_examples
from kgqa_core.papers.grailqability.parsing.parsed_forms import read_parsed
from kgqa_core.papers.grailqability.parsing.rng.results import ResultWeights, save_weights
from kgqa_core.store.publish import publish_folder
from kgqa_core.workspace import Workspace
from tests.support.device import DEVICE
from tests.support.models import save_seq2seq
from tests.support.parsing import U, check_killed_training, key, parsed_by

OPTIONS = DecodeOptions(
    scratch_width=32, scratch_vocabulary=200, width=32, layers=1, heads=2, dropout=0.0, retriever_epochs=10, epochs=60,
    patience=50, batch_size=8, learning_rate=1e-2, relations=5, beam=4, max_actions=8, checkpoint_seconds=1e-6,
    device=DEVICE, questions_per_wording=4,
)  # fmt: skip


@pytest.fixture(scope="module")
def trained(world, tmp_path_factory):
    folder = tmp_path_factory.mktemp("decoder")
    counts = train(Workspace(folder), kg=world.kg, examples=world.all_examples, options=OPTIONS, seed=3)
    return folder, counts


def parsed(world, parser, out, **options):
    return parsed_by(predict, world, parser, out, OPTIONS.model_copy(update=options))


@pytest.mark.slow
def test_forms_of_unseen_entities_are_decoded_with_their_answers(world, trained, tmp_path):
    found, counts = parsed(world, trained[0], tmp_path / "parsed")
    examples = [one for one in read_examples(world.all_examples) if one.split in ("dev", "test")]
    right = [one for one in examples if found[one.id][0].form == one.form]
    assert len(right) >= 0.85 * len(examples), [
        (one.text, found[one.id][0].form) for one in examples if one not in right
    ]
    assert counts["schema_recall"] == 1.0 and trained[1]["recall"]["train"]["slots"] == 1.0
    assert trained[1]["left_out"]["train"] == 0
    capital = found["q5-00"][0]
    assert (capital.answers, capital.empty) == (("urn:x:foville0",), False)
    assert found["q5-03"][0].answers == ("3",)


@pytest.mark.slow
def test_scores_are_logarithms_of_probabilities_best_first(world, trained, tmp_path):
    found, _ = parsed(world, trained[0], tmp_path / "parsed")
    for rows in found.values():
        assert [row.score for row in rows] == sorted((row.score for row in rows), reverse=True)
        assert sum(math.exp(row.score) for row in rows) == pytest.approx(1.0, abs=1e-6)
        assert [row.rank for row in rows] == list(range(len(rows))) and len({row.form for row in rows}) == len(rows)


@pytest.fixture
def less(world, tmp_path):
    """The world without the capital of Forland."""
    lines = (world.kg.parent / "world.nt").read_text("utf-8").splitlines()
    gone = f"<{key('Forland')}> <{U}capital>"
    (tmp_path / "less.nt").write_text("\n".join(line for line in lines if not line.startswith(gone)) + "\n", "utf-8")
    options = KgOptions(files=(str(tmp_path / "less.nt"),))
    publish_folder("kg", tmp_path / "kg", lambda out, work: build(Workspace(out, work), options=options))
    return replace(world, kg=tmp_path / "kg")


@pytest.mark.slow
@pytest.mark.skipif(DEVICE != "cpu", reason="the form that is best here follows from the CPU's random numbers")
def test_a_best_form_that_finds_nothing_is_no_form_unless_the_option_keeps_it(world, less, trained, tmp_path):
    unchanged, _ = parsed(less, trained[0], tmp_path / "kept", on_empty_result="keep")
    emptied, _ = parsed(less, trained[0], tmp_path / "said", on_empty_result="no form")
    shutil.copytree(trained[0], tmp_path / "weighing")
    save_weights(tmp_path / "weighing", ResultWeights(empty=20.0, no_form=10.0), {})
    weighed, _ = parsed(less, tmp_path / "weighing", tmp_path / "auto")  # it has learnt to predict "no form"
    assert weighed["q5-00"][0].empty is not True and weighed["q5-02"][0].form == unchanged["q5-02"][0].form
    best, instead = unchanged["q5-00"][0], emptied["q5-00"][0]
    assert (best.form, best.empty, best.answers) == ("(JOIN (R urn:x:capital) urn:x:forland)", True, ())
    assert (instead.form, instead.empty) == (None, None) and instead.score >= best.score
    assert best.form not in {row.form for row in emptied["q5-00"]}
    assert sum(math.exp(row.score) for row in emptied["q5-00"]) == pytest.approx(1.0, abs=1e-6)
    assert emptied["q5-02"] == unchanged["q5-02"]


@pytest.mark.slow
def test_without_unanswerable_questions_no_form_is_only_predicted_for_what_finds_nothing(world, less, tmp_path):
    options = OPTIONS.model_copy(update={"learn_unanswerable": False, "epochs": 1, "retriever_epochs": 1})
    counts = train(Workspace(tmp_path / "parser"), kg=world.kg, examples=world.all_examples, options=options, seed=3)
    found, _ = parsed(world, tmp_path / "parser", tmp_path / "parsed", on_empty_result="keep")
    assert counts["no_form"]["train"] == 0 and all(row.form is not None for rows in found.values() for row in rows)
    gone, _ = parsed(less, tmp_path / "parser", tmp_path / "gone", on_empty_result="no form")
    assert parsed(less, tmp_path / "parser", tmp_path / "auto")[0] == gone


@pytest.mark.slow
@pytest.mark.parametrize("stop_at", [2, 11])
def test_a_killed_training_ends_with_the_same_bits(world, tmp_path, stop_at):
    options = OPTIONS.model_copy(update={"epochs": 2, "retriever_epochs": 1})
    check_killed_training(train, world, tmp_path, options, stop_at)


@pytest.mark.slow
def test_a_language_model_is_trained_and_decodes(world, tmp_path):
    options = OPTIONS.model_copy(
        update={"model": str(save_seq2seq(tmp_path / "t5")), "epochs": 1, "max_actions": 3, "retriever_epochs": 1}
    )
    counts = train(Workspace(tmp_path / "parser"), kg=world.kg, examples=world.examples, options=options, seed=3)
    assert counts["learnt"]["train"] > 0 and math.isfinite(counts["dev_exact"])
    examples = tmp_path / "examples"
    examples.mkdir()
    write_examples(examples, [one for one in read_examples(world.examples) if one.split == "test"][:3])
    out = tmp_path / "parsed"
    out.mkdir()
    predict(Workspace(out), kg=world.kg, examples=examples, parser=tmp_path / "parser", options=options)
    assert all(rows[0].form is not None or rows[0].empty is None for rows in read_parsed(out).values())
    assert not any(path.suffix in (".bin", ".pt", ".pkl") for path in (tmp_path / "parser").rglob("*"))


def test_examples_without_a_gold_form_are_refused_in_words(world, tmp_path):
    write_examples(tmp_path, [ParseExample("q", "what", "train")])
    with pytest.raises(TrainingError, match="none of the 0 training questions has a gold form"):
        train(Workspace(tmp_path / "parser"), kg=world.kg, examples=tmp_path, options=OPTIONS, seed=3)


@pytest.mark.slow
def test_a_damaged_parser_is_refused_in_words(world, trained, tmp_path):
    shutil.copytree(trained[0], tmp_path / "broken")
    for path in (tmp_path / "broken" / "decoder").iterdir():
        path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(ArtifactError, match="decoder"):
        parsed(world, tmp_path / "broken", tmp_path / "parsed")


@pytest.mark.slow
def test_a_pretrained_encoder_reads_and_is_stored_with_the_parser(world, tmp_path):
    options = {"encoder": "minilm", "epochs": 40, "learning_rate": 5e-3}
    folder = tmp_path / "decoder"
    folder.mkdir()
    chosen = OPTIONS.model_copy(update=options)
    counts = train(Workspace(folder), kg=world.kg, examples=world.all_examples, options=chosen, seed=3)
    found, _ = parsed(world, folder, tmp_path / "parsed", **options)
    examples = [one for one in read_examples(world.all_examples) if one.split in ("dev", "test")]
    right = sum(found[one.id][0].form == one.form for one in examples)
    assert right >= 0.8 * len(examples)
    assert counts["parameters"]["decoder"] < 200_000  # the encoder is not in it
