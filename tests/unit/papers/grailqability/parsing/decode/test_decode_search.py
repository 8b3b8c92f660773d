"""Every form that a decoder writes reads and types, whatever its weights and its input."""

from __future__ import annotations

from itertools import islice

import pytest
import torch

from kgqa_core.logic.parser import parse
from kgqa_core.logic.typed import typed
from kgqa_core.nn.encoders import learn_tokenizer
from kgqa_core.papers.grailqability.parsing.decode.decoder import PointerDecoder
from kgqa_core.papers.grailqability.parsing.decode.network import new_network
from kgqa_core.papers.grailqability.parsing.decode.rows import PLACEHOLDERS, READ, Batcher, reader_of, slot_actions
from kgqa_core.papers.grailqability.parsing.decode.text_decoder import TextDecoder
from tests.support.device import DEVICE
from tests.support.models import save_causal, save_seq2seq
from tests.support.parsing import WORDS, random_questions

ON = torch.device(DEVICE)


def pointer(seed):
    """A scratch decoder with random weights, far from uniform."""
    tokenizer = learn_tokenizer([" ".join(WORDS)], 200, PLACEHOLDERS)
    batcher = Batcher(reader_of(tokenizer, 64), slot_actions(4, 3, 3, 6))
    torch.manual_seed(seed)
    network = new_network(tokenizer.get_vocab_size(), READ, batcher.actions, width=16, layers=1, heads=2, dropout=0.1)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.normal_(std=0.7)
    return PointerDecoder(network, batcher, ON)


def check(decoder, questions, beams):
    """The number of forms that were written of some questions, each of which reads and types."""
    written = 0
    found = decoder.search([one.row for one in questions], [one.automaton for one in questions], beams)
    for one, forms in zip(questions, found, strict=True):
        assert forms, f"nothing was written for {one.row}"
        assert [score for _, score in forms] == sorted((score for _, score in forms), reverse=True)
        assert all(score <= 0 for _, score in forms) and len({form for form, _ in forms}) == len(forms)
        for form, _ in forms:
            if form is None:
                assert one.automaton.no_form
                continue
            assert parse(str(form)) == form
            typed(form, one.ground.schema, one.types)
            written += 1
    return written


def test_random_decoders_write_only_forms_that_read_and_type():
    written = 0
    for seed in range(5):
        questions = list(random_questions(seed, 32))
        written += check(pointer(seed), questions, beams=1 + seed % 4)
    assert written > 300


def test_questions_of_a_batch_do_not_change_each_other():
    decoder, questions = pointer(1), list(random_questions(3, 6))
    together = decoder.search([one.row for one in questions], [one.automaton for one in questions], 3)
    for place, one in enumerate(questions):
        (alone,) = decoder.search([one.row], [one.automaton], 3)
        assert [form for form, _ in alone] == [form for form, _ in together[place]]
        assert [score for _, score in alone] == pytest.approx([score for _, score in together[place]], abs=1e-3)


@pytest.mark.parametrize("save", [save_seq2seq, save_causal])
def test_language_models_write_only_forms_that_read_and_type(tmp_path, save):
    more = {"positions": 2048} if save is save_causal else {}
    decoder = TextDecoder(save(tmp_path, seed=5, **more), ON)
    questions = [one for one in islice(random_questions(7, 40), 40) if one.automaton.limits.actions <= 6][:8]
    assert check(decoder, questions, beams=2) >= 4


def test_pieces_of_a_question_differ_and_none_begins_another(tmp_path):
    decoder = TextDecoder(save_seq2seq(tmp_path), ON)
    for one in random_questions(11, 20):
        pieces = decoder.pieces.of(one.row)
        assert len(set(pieces)) == len(pieces) == one.row.slots.actions
        marks = [piece.index(decoder.pieces.mark) for piece in pieces if decoder.pieces.mark in piece]
        assert marks == [len(piece) - 1 for piece in pieces if decoder.pieces.mark in piece]
