"""The reader's tokenizer: byte-level BPE learnt from its own invented text.

The same name must get the same tokens wherever it stands, or it could not be copied: after `(`, `_` and `<inv>-` a
blank is inserted before a Latin letter or a digit and removed again when tokens become text.  Digits and Chinese
characters are split one by one.
"""

from __future__ import annotations

from collections.abc import Iterable

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from tools.builtin_reader.corpus import END

PAD = "<|pad|>"
SPLIT = r" ?<inv>-| ?\p{N}|\p{Han}| ?(?:(?!\p{Han})\p{L})+| ?[^\s\p{L}\p{N}]+|\s+"
OPENING = ("(", "_", "<inv>-")


def learn(texts: Iterable[str], vocabulary: int) -> Tokenizer:
    """A tokenizer with `vocabulary` tokens learnt from texts; the same texts give the same tokenizer."""
    tokenizer = Tokenizer(models.BPE())
    blank = [normalizers.Replace(Regex(rf"{_escaped(mark)}(?=[\p{{Latin}}\p{{N}}])"), mark + " ") for mark in OPENING]
    tokenizer.normalizer = normalizers.Sequence(blank)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    unblank = [decoders.Replace(mark + " ", mark) for mark in OPENING]
    tokenizer.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Fuse(), *unblank])
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[PAD, END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def _escaped(mark: str) -> str:
    return mark.replace("(", r"\(")


def letter_pieces(tokenizer: Tokenizer) -> tuple[str, ...]:
    """The tokens of two or more small Latin letters, sorted: building blocks of further names."""
    pieces = (token.removeprefix("Ġ") for token in tokenizer.get_vocab())
    return tuple(
        sorted(
            {piece for piece in pieces if len(piece) > 1 and piece.isascii() and piece.islower() and piece.isalpha()}
        )
    )
