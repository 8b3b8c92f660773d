"""A parser of amrlib, where that is installed: a T5 that learns two graphs; its pickled weights are converted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

from kgqa_core.llm.convert import convert
from kgqa_core.papers.ltgen.relation_ranking.amr import read_penman, reify
from kgqa_core.papers.ltgen.relation_ranking.amr_source import open_parser

pytest.importorskip("amrlib", reason="a user's own package, which nothing here declares: pip install amrlib")

GRAPHS = {
    "who developed skype": "( develop-02 :ARG0 ( amr-unknown ) :ARG1 ( product ) )",
    "where is oslo": "( be-located-at-91 :ARG1 ( city ) :ARG2 ( amr-unknown ) )",
}
"""As amrlib's xfm parsers write them: no variables."""


def save_parser(folder: Path) -> None:
    """A T5 of one layer that writes the graphs, as amrlib's `parse_xfm` saves it, with pickled weights."""
    words = sorted({word for pair in GRAPHS.items() for text in pair for word in text.split()})
    vocabulary = {token: number for number, token in enumerate(["<pad>", "<end>", "<unk>", *words])}
    own = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    own.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    own.post_processor = processors.TemplateProcessing(single="$A <end>", special_tokens=[("<end>", 1)])
    marks = {"eos_token": "<end>", "unk_token": "<unk>", "pad_token": "<pad>"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=own, **marks)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    lengths = {"model_name_or_path": "nobody/nothing", "max_in_len": 32, "max_out_len": 48}
    config = T5Config(
        vocab_size=len(vocabulary), d_model=32, d_kv=8, d_ff=64, num_layers=1, num_heads=4, eos_token_id=1,
        pad_token_id=0, decoder_start_token_id=0, dropout_rate=0.0, task_specific_params={"parse_amr": lengths},
    )  # fmt: skip
    model = T5ForConditionalGeneration(config)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    read = tokenizer(list(GRAPHS), return_tensors="pt", padding=True)
    written = tokenizer(list(GRAPHS.values()), return_tensors="pt", padding=True).input_ids
    for _ in range(300):
        wanted = written.masked_fill(written == 0, -100)
        model(input_ids=read.input_ids, attention_mask=read.attention_mask, labels=wanted).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.save_pretrained(folder)
    (folder / "model.safetensors").unlink()
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    meta = {"inference_module": ".parse_xfm.inference", "inference_class": "Inference", "model_fn": "pytorch_model.bin"}
    (folder / "amrlib_meta.json").write_text(json.dumps(meta))


@pytest.mark.filterwarnings("ignore")
def test_a_parser_of_amrlib_writes_the_graphs_that_it_learnt(tmp_path: Path) -> None:
    save_parser(tmp_path / "published")
    convert(tmp_path / "published", tmp_path / "parser")
    parser = open_parser(f"amrlib:{tmp_path / 'parser'}")
    assert parser is not None
    graphs = [reify(read_penman(str(graph))) for graph in parser.parse(list(GRAPHS))]
    assert [graph.labels for graph in graphs] == [
        ("develop", "unknown", "product", "ARG0", "ARG1"), ("be located at", "city", "unknown", "ARG1", "ARG2"),
    ]  # fmt: skip
