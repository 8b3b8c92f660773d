"""How likely a model finds what it writes: the same number wherever it comes from, and kept with what was paid for."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from kgqa_core.config import LlmOptions
from kgqa_core.llm.cache import Identity, Request, open_cache
from kgqa_core.llm.hf import HFModel
from kgqa_core.llm.openai_api import OpenAIModel, read_reply
from kgqa_core.llm.paid import PromptBatch, generate_cached
from kgqa_core.llm.protocol import Completion, GenerationParams
from tests.support.chat_server import ChatServer, Fault
from tests.support.device import DEVICE
from tests.support.models import save_causal, save_seq2seq

PARAMS = GenerationParams(max_new_tokens=6, log_probabilities=True)
REQUEST = Request(Identity("openai", "http://127.0.0.1:1/v1", "m", "m"), GenerationParams(), "Who?")


@pytest.mark.parametrize("save", [save_causal, save_seq2seq], ids=["causal", "seq2seq"])
def test_it_is_what_the_model_gives_the_tokens_that_it_wrote(save, tmp_path: Path) -> None:
    model = HFModel(save(tmp_path / "m"), device=DEVICE)
    prompts = ["what is it?", "a much longer question than the other one?"]
    for prompt, completion in zip(prompts, model.generate(prompts, PARAMS), strict=True):
        ids = model.tokenizer(prompt, return_tensors="pt").to(DEVICE)["input_ids"]
        with torch.inference_mode():
            out = model.model.generate(
                input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=6, do_sample=False,
                return_dict_in_generate=True, output_logits=True,
            )  # fmt: skip
        new = out.sequences[0, -len(out.logits) :]
        expected = [logits[0].float().log_softmax(-1)[token] for logits, token in zip(out.logits, new, strict=True)]
        assert completion.scored_tokens == completion.completion_tokens == len(expected)
        assert completion.log_probability == pytest.approx(float(sum(expected)), abs=1e-3)


def test_beams_tell_it_too_and_nobody_who_does_not_ask_is_told(tmp_path: Path) -> None:
    model = HFModel(save_causal(tmp_path / "m"), device=DEVICE)
    [searched] = model.generate(["what is it?"], replace(PARAMS, num_beams=3))
    [greedy] = model.generate(["what is it?"], PARAMS)
    assert searched.log_probability is not None and greedy.log_probability is not None
    assert searched.log_probability < 0
    for beams in (1, 3):
        [silent] = model.generate(["what is it?"], GenerationParams(max_new_tokens=6, num_beams=beams))
        assert (silent.log_probability, silent.scored_tokens) == (None, 0)
        assert silent.text == (greedy if beams == 1 else searched).text


def test_keys_change_only_for_those_who_ask() -> None:
    asking = replace(REQUEST, params=GenerationParams(log_probabilities=True))
    assert asking.key != REQUEST.key


def test_it_is_kept_exported_and_cleared_with_its_completion(tmp_path: Path) -> None:
    cache = open_cache(tmp_path / "cache")
    completion = Completion("x", "stop", 3, 2, log_probability=-1.25, scored_tokens=2)
    cache.put(REQUEST, completion)
    cache.put(replace(REQUEST, prompt="older"), Completion("y"))
    cache.flush()
    found = cache.get([REQUEST, replace(REQUEST, prompt="older")])
    assert found[REQUEST.key].completion == completion
    assert found[replace(REQUEST, prompt="older").key].completion == Completion("y")
    assert cache.export(tmp_path / "out.jsonl") == 2
    rows = {row["text"]: row for row in map(json.loads, (tmp_path / "out.jsonl").read_text("utf-8").splitlines())}
    assert (rows["x"]["log_probability"], rows["x"]["scored_tokens"]) == (-1.25, 2)
    assert "log_probability" not in rows["y"]
    assert cache.clear() == 2
    cache.put(REQUEST, Completion("x"))
    cache.flush()
    assert cache.get([REQUEST])[REQUEST.key].completion.log_probability is None


def test_a_server_is_asked_for_it_and_what_it_tells_is_summed() -> None:
    tokens = [{"token": "Ro", "logprob": -0.5}, {"token": "me", "logprob": -0.25}]
    choice = {"message": {"content": "Rome"}, "finish_reason": "stop", "logprobs": {"content": tokens}}
    reply = json.dumps({"choices": [choice], "usage": {"completion_tokens": 9}}).encode()
    scored = read_reply(reply, PARAMS)
    assert (scored.log_probability, scored.scored_tokens) == (-0.75, 2)
    assert read_reply(reply, GenerationParams()).log_probability is None
    for none in (None, {"content": None}, {"content": []}, {"content": [{"logprob": float("-inf")}]}):
        reply = json.dumps({"choices": [{**choice, "logprobs": none}]}).encode()
        assert read_reply(reply, PARAMS) == Completion("Rome")
    with ChatServer() as server:
        model = OpenAIModel("m", LlmOptions(base_url=server.base_url))
        assert (
            generate_cached(model, PromptBatch(["a"], PARAMS))[0].completion
            == model.generate(["a"], GenerationParams())[0]
        )
    assert [body.get("logprobs") for body in server.bodies] == [True, None]


def test_a_server_that_refuses_to_tell_is_asked_without(monkeypatch: pytest.MonkeyPatch) -> None:
    says = {"error": {"message": "Unsupported parameter: 'logprobs' is not supported with this model."}}
    monkeypatch.setattr("tests.support.chat_server.error_body", lambda status: says)
    with ChatServer() as server:
        server.fail("", Fault(status=400))
        out = OpenAIModel("m", LlmOptions(base_url=server.base_url, retries=0)).generate(["a", "b"], PARAMS)
    assert [completion.text for completion in out] == ["echo a", "echo b"]
    assert [body.get("logprobs") for body in server.bodies] == [True, None, None]
