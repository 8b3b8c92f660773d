"""Texts read by a pretrained encoder that does not learn: placeholders, states, and a table that grows."""

from __future__ import annotations

import pytest
import torch

from kgqa_core.config import DecodeOptions
from kgqa_core.nn.encoders import new_encoder
from kgqa_core.papers.grailqability.parsing import frozen_reader
from kgqa_core.papers.grailqability.parsing.decode.rows import PLACEHOLDERS
from kgqa_core.papers.grailqability.parsing.frozen_reader import FILLER, FrozenReader, FrozenWords


@pytest.fixture(scope="module")
def reader() -> FrozenReader:
    encoder, texts, _ = new_encoder(DecodeOptions(encoder="minilm"), lambda token: [], "parsing.decode", PLACEHOLDERS)
    return FrozenReader(encoder, texts, PLACEHOLDERS)


def test_placeholders_are_tokens_of_their_own_and_words_are_rows_of_the_table(reader: FrozenReader) -> None:
    text = "did [E1] meet [E2] in [V1] ?"
    [row, same] = reader.read([text, text])
    mark = {placeholder: 2 + number for number, placeholder in enumerate(PLACEHOLDERS)}
    assert [number for number in row if number < reader.first] == [mark["[E1]"], mark["[E2]"], mark["[V1]"]]
    assert [number >= reader.first for number in row] == [True, False, True, False, True, False, True]
    assert len({*row, *same} - set(mark.values())) == 8
    words = [number - reader.first for number in row if number >= reader.first]
    ids, mask = reader.reader.batch(reader.reader.read([text.replace("[E1]", FILLER).replace("[E2]", FILLER)
                                                        .replace("[V1]", FILLER)]))  # fmt: skip
    with torch.no_grad():
        states = reader.encoder.states(ids, mask)[0]
    assert torch.allclose(reader.table[words], states[[1, 3, 5, 7]], atol=1e-5)


def test_vectors_are_means_of_words_and_an_empty_text_has_none(reader: FrozenReader) -> None:
    first, again, other, nothing = reader.vectors(["capital city", "capital city", "[E1] capital city", "[E1]"])
    assert torch.equal(first, again) and not torch.equal(first, other) and not nothing.any()
    assert reader.read([""]) == [[1]]


def test_the_table_keeps_what_it_has_when_it_grows(reader: FrozenReader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frozen_reader, "ROOM", 16)
    reader = FrozenReader(reader.encoder, reader.reader, PLACEHOLDERS)
    [row] = reader.read(["the first text"])
    before = reader.table[row[0] - reader.first].clone()
    with torch.inference_mode():
        reader.read([f"{number} texts of several words" for number in range(20)])
        reader.vectors(["one text"])
    reader.read(["another text"])
    assert torch.equal(reader.table[row[0] - reader.first], before)


def test_words_map_states_and_learn_vectors_of_placeholders(reader: FrozenReader) -> None:
    words = FrozenWords(reader.encoder.width, reader.first, 8).eval()
    words.read_by(reader)
    ids, mask = reader.batch(reader.read(["was [E1] here", "here"]))
    vectors = words(ids)
    assert vectors.shape == (2, 3, 8) and mask.tolist() == [[1, 1, 1], [1, 0, 0]]
    assert torch.equal(vectors[0, 1], words.reserved.weight[2]) and not vectors[1, 1:].any()
    assert torch.allclose(vectors[0, 0], words.linear(reader.table[ids[0, 0] - reader.first]))
    vectors.sum().backward()
    assert words.linear.weight.grad is not None and all(p.grad is None for p in reader.encoder.parameters())
