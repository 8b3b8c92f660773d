"""The scratch decoder: a small T5 of transformers that points at the slots of each question.

    encoder   reads  the words of the masked question, then one position for each slot
    slot i           mean of its label's word vectors + vector of its kind + W features
                     (word vectors are learnt, or a map of the states of a pretrained encoder)
    decoder          one action a step; an operator has a vector of its own, a slot has W_role (encoder's state of it)
    P(action)        softmax over operators and the question's slots of decoder state · vector of the action; to that of
                     a slot V_role features is added, so that what the retriever says of it reaches the choice unchanged

A relation is one slot with two roles, forward and inverse.  No weight depends on the graph: a relation that training
never saw is read by its label.  In place of ReTraCk's LSTM there is T5; the pointing is as there (Chen et al. 2021,
section 3.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import T5Config, T5ForConditionalGeneration
from transformers.modeling_outputs import BaseModelOutput, Seq2SeqLMOutput

from kgqa_core.papers.grailqability.parsing.decode.actions import END, FIXED, NUMBER, PAD, START
from kgqa_core.papers.grailqability.parsing.frozen_reader import FrozenWords

LEAF, FORWARD, INVERSE = range(3)
"""Roles of a slot."""
KINDS = ("topic", "class", "literal", "relation")
NO = -1e9
"""Logit of what a question has not."""


@dataclass(frozen=True)
class DecoderBatch:
    """Questions as tensors.

    words [batch, length], mask [batch, length]: token ids of the question.  labels [labels, length], with their mask:
    token ids of distinct labels.  label, kind [batch, items], features [batch, items, F]: of each slot; there [batch,
    items]: 1 where there is one.  item, role [batch, slot actions]: which slot an action points at, -1 for none.
    """

    words: Tensor
    mask: Tensor
    labels: Tensor
    labels_mask: Tensor
    label: Tensor
    kind: Tensor
    features: Tensor
    there: Tensor
    item: Tensor
    role: Tensor


class PointerT5(T5ForConditionalGeneration):  # type: ignore[misc]
    """A T5 whose vocabulary is the fixed actions and as many slot actions as a question may have.

    words: tokens of the question's vocabulary.  features: numbers that describe a slot.  states: width of the states
    of a pretrained encoder, which are read in place of word vectors; 0 where these are learnt.
    """

    def __init__(self, config: T5Config) -> None:
        super().__init__(config)
        width = config.d_model
        self.words: nn.Embedding | FrozenWords = (
            FrozenWords(config.states, config.words, width)
            if config.states
            else nn.Embedding(config.words, width, padding_idx=0)
        )
        self.kinds = nn.Embedding(len(KINDS), width)
        self.features = nn.Linear(config.features, width, bias=False)
        self.actions = nn.Embedding(len(FIXED), width)
        self.keys = nn.Linear(width, 3 * width)
        self.values = nn.Linear(width, 3 * width)
        self.described = nn.Linear(config.features, 3 * width, bias=False)
        self.hidden = nn.Dropout(config.dropout_rate)

    def open(self, slots: int) -> None:
        """Makes room for so many slot actions; beam search wants the number, no weight has it in its shape."""
        self.config.vocab_size = len(FIXED) + slots

    def encoded(self, batch: DecoderBatch, hide: float = 0.0) -> tuple[Tensor, Tensor]:
        """States of the encoder [batch, positions, width], and their mask; slots follow the last word of each question.

        hide: share of words replaced.  Without a gap before the slots, a question's states do not depend on its batch.
        """
        words = batch.words
        if hide:
            words = torch.where(torch.rand(words.shape, device=words.device) < hide, 1, words)
        weights = batch.labels_mask.unsqueeze(-1).to(self.words.weight.dtype)
        labels = (self.words(batch.labels) * weights).sum(1) / weights.sum(1).clamp(min=1)
        slots = labels[batch.label] + self.kinds(batch.kind) + self.features(batch.features)
        inputs, mask = torch.cat([self.words(words), slots], 1), torch.cat([batch.mask, batch.there], 1)
        order = torch.sort(mask, dim=1, descending=True, stable=True).indices[:, : int(mask.sum(1).max())]
        inputs = inputs.gather(1, order.unsqueeze(-1).expand(-1, -1, inputs.shape[-1]))
        mask = mask.gather(1, order)
        return self.encoder(inputs_embeds=inputs, attention_mask=mask).last_hidden_state, mask

    def pointers(self, states: Tensor, batch: DecoderBatch) -> dict[str, Tensor]:
        """What `forward` reads of the actions of each question.

        keys, values [batch, actions, width]: what is compared with the decoder, and what the decoder reads after an
        action.  present [batch, actions]: whether the question has it.  states: of `encoded`.
        """
        width = states.shape[-1]
        at = batch.item.clamp(min=0) + batch.mask.sum(1, keepdim=True)
        index = (at.clamp(max=states.shape[1] - 1) * 3 + batch.role).unsqueeze(-1).expand(-1, -1, width)
        fixed = self.actions.weight.unsqueeze(0).expand(len(states), -1, -1)
        keys, values = (
            torch.cat([fixed, layer(states).unflatten(-1, (3, width)).flatten(1, 2).gather(1, index)], 1)
            for layer in (self.keys, self.values)
        )
        at = (batch.item.clamp(min=0) * 3 + batch.role).unsqueeze(-1).expand(-1, -1, width)
        described = self.described(batch.features).unflatten(-1, (3, width)).flatten(1, 2).gather(1, at)
        return {
            "keys": keys + nn.functional.pad(described, (0, 0, len(FIXED), 0)),
            "values": values,
            "present": nn.functional.pad(batch.item >= 0, (len(FIXED), 0), value=True),
        }

    def forward(  # type: ignore[override]
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        encoder_outputs: Any = None,
        past_key_values: Any = None,
        keys: Tensor | None = None,
        values: Tensor | None = None,
        present: Tensor | None = None,
        use_cache: bool | None = None,
        **kwargs: Any,
    ) -> Seq2SeqLMOutput:
        """Logits [batch, actions so far, actions].  encoder_outputs: of `encoded`; the others: of `pointers`."""
        assert decoder_input_ids is not None and keys is not None and values is not None and present is not None
        states = encoder_outputs[0]
        width = states.shape[-1]
        out = self.decoder(
            inputs_embeds=values.gather(1, decoder_input_ids.unsqueeze(-1).expand(-1, -1, width)),
            encoder_hidden_states=states,
            encoder_attention_mask=attention_mask,
            past_key_values=past_key_values,
            use_cache=use_cache,
        )
        logits = self.hidden(out.last_hidden_state) @ keys.transpose(1, 2) * width**-0.5
        logits = logits.masked_fill(~present.unsqueeze(1), NO)
        return Seq2SeqLMOutput(logits=logits, past_key_values=out.past_key_values, encoder_last_hidden_state=states)

    def loss(self, batch: DecoderBatch, actions: Tensor, hide: float = 0.0) -> Tensor:
        """Mean cross entropy of the actions [batch, length] that follow START, `PAD` aside."""
        logits = self.teacher_forced_logits(batch, actions, hide)
        return nn.functional.cross_entropy(logits.flatten(0, 1), actions.flatten(), ignore_index=NUMBER[PAD])

    def teacher_forced_logits(self, batch: DecoderBatch, actions: Tensor, hide: float = 0.0) -> Tensor:
        """Logits [batch, length, actions] of each action after the right ones before it."""
        states, mask = self.encoded(batch, hide)
        before = nn.functional.pad(actions[:, :-1], (1, 0), value=NUMBER[START])
        outputs = BaseModelOutput(last_hidden_state=states)
        logits: Tensor = self(
            attention_mask=mask,
            decoder_input_ids=before,
            encoder_outputs=outputs,
            use_cache=False,
            **self.pointers(states, batch),
        ).logits
        return logits


def new_network(
    words: int, features: int, slots: int, *, width: int, layers: int, heads: int, dropout: float, states: int = 0
) -> PointerT5:
    """A network to be trained.  slots: slot actions of a question at most.  words, states: as of `PointerT5`."""
    settings: dict[str, Any] = {
        "vocab_size": len(FIXED) + slots, "d_model": width, "d_kv": width // heads, "d_ff": 2 * width,
        "num_layers": layers, "num_decoder_layers": layers, "num_heads": heads, "dropout_rate": dropout,
        "feed_forward_proj": "relu", "tie_word_embeddings": False, "pad_token_id": NUMBER[PAD],
        "decoder_start_token_id": NUMBER[START], "eos_token_id": NUMBER[END], "words": words, "features": features,
        "states": states,
    }  # fmt: skip
    return PointerT5(T5Config(**settings))
