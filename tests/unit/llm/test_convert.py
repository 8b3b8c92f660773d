"""Pickled weights and GGUF files become safetensors: the same model, and nothing of a pickle but its tensors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import gguf
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForSeq2SeqLM

from kgqa_core.config import LlmOptions
from kgqa_core.errors import InputError, ModelError, OutputError
from kgqa_core.llm import convert_process
from kgqa_core.llm.convert import INDEX, convert
from kgqa_core.llm.factory import identify
from kgqa_core.llm.hf import HFModel
from kgqa_core.llm.hf_load import revision_of
from kgqa_core.llm.protocol import GenerationParams
from tests.support.chat_server import ChatServer
from tests.support.forked_command import forked_kgqa
from tests.support.models import save_causal, save_seq2seq

SHARDS = ("pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin")


class Command:
    """Runs a command of the shell when it is unpickled."""

    def __init__(self, line: str) -> None:
        self.line = line

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.system, (self.line,)


def pickled(folder: Path, *, shards: bool = False, legacy: bool = False) -> dict[str, torch.Tensor]:
    """A saved T5 whose weights are pickled instead; its state, in which four names share the embeddings."""
    save_seq2seq(folder)
    state = AutoModelForSeq2SeqLM.from_pretrained(folder).state_dict()
    (folder / "model.safetensors").unlink()
    if not shards:
        torch.save(state, folder / "pytorch_model.bin", _use_new_zipfile_serialization=not legacy)
        return state
    names = list(state)
    weight_map = {name: SHARDS[number * 2 // len(names)] for number, name in enumerate(names)}
    for shard in SHARDS:
        torch.save({name: state[name] for name in names if weight_map[name] == shard}, folder / shard)
    (folder / INDEX).write_text(json.dumps({"metadata": {"total_size": 0}, "weight_map": weight_map}))
    return state


def bad(folder: Path, held: object) -> Path:
    folder.mkdir(parents=True)
    torch.save(held, folder / "pytorch_model.bin")
    return folder


@pytest.fixture
def same_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the process does is done in this one: starting it takes seconds, and its limits would stay."""

    def run(command: list[str], input: bytes, **more: Any) -> Any:
        assert command[-1] == convert_process.__file__
        job = json.loads(input)
        done = convert_process.converted(job["files"], job["bytes"]) | {"alone": False}
        return subprocess.CompletedProcess(command, 0, json.dumps(done).encode())

    monkeypatch.setattr(subprocess, "run", run)


@pytest.mark.usefixtures("same_process")
@pytest.mark.parametrize("how", [{}, {"legacy": True}, {"shards": True}], ids=["one file", "legacy", "shards"])
def test_a_converted_model_has_the_same_weights_and_writes_the_same(tmp_path: Path, how: dict[str, bool]) -> None:
    state = pickled(tmp_path / "from", **how)
    (tmp_path / "from" / "modeling_own.py").write_text("raise SystemExit")
    done = convert(tmp_path / "from", tmp_path / "to")
    tensors = {name: each for file in done["files"] for name, each in load_file(tmp_path / "to" / file).items()}
    assert tensors.keys() == state.keys() and all(torch.equal(tensors[name], state[name]) for name in state)
    assert done["tensors"] == len(state) and done["tied"] == (2 if how.get("shards") else 3)
    assert "modeling_own.py" in done["left_out"] and not (tmp_path / "to" / "modeling_own.py").exists()
    assert len(done["files"]) == (2 if how.get("shards") else 1)
    model = HFModel(tmp_path / "to", device="cpu")
    assert model.revision == done["digest"] == revision_of(str(tmp_path / "to"), None)
    save_seq2seq(tmp_path / "as it was")
    prompts, params = ["who is a cat?", "no"], GenerationParams(max_new_tokens=12)
    assert model.generate(prompts, params) == HFModel(tmp_path / "as it was", device="cpu").generate(prompts, params)


def test_the_global_that_a_pickle_calls_is_named_and_never_called(tmp_path: Path) -> None:
    folder = bad(tmp_path / "from", {"weight": torch.zeros(2), "more": Command(f"touch {tmp_path}/ran")})
    with pytest.raises(ModelError, match=r"pytorch_model\.bin is a pickle that calls '(posix|os)\.system'"):
        convert(folder, tmp_path / "to")
    assert not (tmp_path / "ran").exists() and not (tmp_path / "to").exists()


@pytest.mark.usefixtures("same_process")
def test_a_class_that_is_no_tensor_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"calls '[\w.]*PosixPath'"):
        convert(bad(tmp_path / "from", {"weight": Path("x")}), tmp_path / "to")


@pytest.mark.usefixtures("same_process")
@pytest.mark.parametrize(
    ("held", "message"),
    [({"model": {"w": torch.zeros(2)}}, "'model' is a dict; only a flat table"), ([torch.zeros(2)], "it holds list"),
     ({}, "it holds dict"), ({"w": torch.eye(3).to_sparse()}, "'w' is a torch.sparse_coo"),
     ({"step": 7}, "'step' is a int"),
     ({"w": torch.zeros(1).expand(1 << 40)}, "claim more than")],
    ids=["nested", "list", "empty", "sparse", "number", "bomb"],
)  # fmt: skip
def test_what_is_no_table_of_tensors_is_refused(tmp_path: Path, held: object, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        convert(bad(tmp_path / "from", held), tmp_path / "to")
    assert not (tmp_path / "to").exists()


@pytest.mark.usefixtures("same_process")
def test_a_view_is_written_with_its_own_numbers_only(tmp_path: Path) -> None:
    whole = torch.arange(1 << 16, dtype=torch.float32).reshape(256, 256)
    done = convert(bad(tmp_path / "from", {"part": whole[3:5, :7], "turned": whole.T}), tmp_path / "to")
    held = load_file(tmp_path / "to" / "model.safetensors")
    assert torch.equal(held["part"], whole[3:5, :7]) and torch.equal(held["turned"], whole.T) and done["tied"] == 1


@pytest.mark.usefixtures("same_process")
def test_an_adapter_of_peft_is_converted_too(tmp_path: Path) -> None:
    folder = bad(tmp_path / "from", {"lora_A": torch.ones(2, 2)})
    (folder / "pytorch_model.bin").rename(folder / "adapter_model.bin")
    assert convert(folder, tmp_path / "to")["files"] == ["adapter_model.safetensors"]


@pytest.mark.usefixtures("same_process")
def test_damaged_weights_and_indexes_are_refused(tmp_path: Path) -> None:
    pickled(tmp_path / "cut")
    file = tmp_path / "cut" / "pytorch_model.bin"
    file.write_bytes(file.read_bytes()[:5000])
    with pytest.raises(ModelError, match="cannot be read as weights.*download it again"):
        convert(tmp_path / "cut", tmp_path / "to")
    pickled(tmp_path / "shards", shards=True)
    index = tmp_path / "shards" / INDEX
    weight_map = json.loads(index.read_bytes())["weight_map"]
    for given, message in (
        ({**weight_map, "absent": SHARDS[0]}, "names 'absent'"), ({**weight_map, "x": "gone.bin"}, "names 'gone.bin'"),
        ({**weight_map, "x": "../cut/pytorch_model.bin"}, "names '../cut"), ([], "is no index"),
    ):  # fmt: skip
        index.write_text(json.dumps({"weight_map": given}))
        with pytest.raises(ModelError, match=message):
            convert(tmp_path / "shards", tmp_path / "to")
    assert not (tmp_path / "to").exists()


@pytest.mark.usefixtures("same_process")
def test_folders_that_need_no_conversion_and_places_that_are_taken_say_so(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="safetensors already"):
        convert(save_causal(tmp_path / "safe"), tmp_path / "to")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelError, match="has none of pytorch_model.bin"):
        convert(tmp_path / "empty", tmp_path / "to")
    with pytest.raises(ModelError, match="is not a folder"):
        convert(tmp_path / "absent", tmp_path / "to")
    folder = bad(tmp_path / "from", {"w": torch.zeros(2)})
    convert(folder, tmp_path / "to")
    with pytest.raises(OutputError):
        convert(folder, tmp_path / "to")
    with pytest.raises(InputError):
        convert(folder, folder / "to", force=True)


def save_gguf(file: Path) -> dict[str, torch.Tensor]:
    """A Llama of one layer as a GGUF file with a tokenizer of characters; what its matrices hold."""
    characters = ["<end>", *"abcdefghijklmnopqrstuvwxyz?.:", "Ġ", "ab", "<user>"]
    writer = gguf.GGUFWriter(file, "llama")
    for key, number in (("vocab_size", len(characters)), ("context_length", 64), ("embedding_length", 8),
                        ("feed_forward_length", 12), ("block_count", 1), ("head_count", 2), ("head_count_kv", 1),
                        ("layer_norm_rms_eps", 1e-5), ("rope_freq_base", 1e4), ("eos_token_id", 0),
                        ("pad_token_id", 0)):  # fmt: skip
        getattr(writer, f"add_{key}")(number)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(characters)
    writer.add_token_types([3] + [1] * (len(characters) - 2) + [3])
    writer.add_token_merges(["a b"])
    writer.add_chat_template("<user>{{ messages[-1]['content'] }}")
    torch.manual_seed(3)
    sizes = {
             "token_embd": (len(characters), 8), "blk.0.attn_q": (8, 8), "blk.0.attn_k": (4, 8),
             "blk.0.attn_v": (4, 8), "blk.0.attn_output": (8, 8), "blk.0.ffn_gate": (12, 8), "blk.0.ffn_up": (12, 8),
             "blk.0.ffn_down": (8, 12), "blk.0.attn_norm": (8,), "blk.0.ffn_norm": (8,), "output_norm": (8,),
    }  # fmt: skip
    state = {name: torch.randn(*size) for name, size in sizes.items()}
    for name, held in state.items():
        writer.add_tensor(f"{name}.weight", held.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return state


def test_a_gguf_file_becomes_a_folder_that_answers_by_its_chat_template(tmp_path: Path) -> None:
    state = save_gguf(tmp_path / "tiny.gguf")
    done = convert(tmp_path / "tiny.gguf", tmp_path / "to")
    held = load_file(tmp_path / "to" / "model.safetensors")
    assert len(held) == done["tensors"] == len(state), "the embeddings, which are the output layer too, once"
    assert torch.equal(held["model.embed_tokens.weight"], state["token_embd"])
    assert torch.equal(held["model.layers.0.mlp.down_proj.weight"], state["blk.0.ffn_down"])
    assert "quantization_config" not in json.loads((tmp_path / "to" / "config.json").read_bytes())
    model = HFModel(tmp_path / "to", device="cpu")
    assert model.revision == done["digest"] and model._worded("who?") == ("<user>who?", True)
    assert model.generate(["who?"], GenerationParams(max_new_tokens=4))[0].finish in ("stop", "length")
    assert (identify(f"hf:{tmp_path / 'to'}", LlmOptions()) or model).revision == f"{model.revision} chat"


def test_what_is_no_gguf_file_and_a_missing_package_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.gguf").write_bytes(b"GGUF no more")
    (tmp_path / "a.bin").touch()
    with pytest.raises(ModelError, match="cannot be read as GGUF"):
        convert(tmp_path / "a.gguf", tmp_path / "to")
    with pytest.raises(ModelError, match="neither a model folder nor a GGUF file"):
        convert(tmp_path / "a.bin", tmp_path / "to")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModelError, match="needs gguf, which is not installed; pip install gguf"):
        convert(tmp_path / "a.gguf", tmp_path / "to")
    assert not (tmp_path / "to").exists()


def test_the_process_reaches_no_server_and_is_given_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ChatServer() as server:
        port = server.base_url.split(":")[2].split("/")[0]
        line = (
            f"import sys; sys.path.insert(0, {str(Path(convert_process.__file__).parent)!r}); import socket\n"
            f"from convert_process import leave_network, limit\nalone = leave_network()\n"
            f"try: socket.create_connection(('127.0.0.1', {port}), 5); reached = True\n"
            "except OSError: reached = False\nprint(alone, reached)\n"
            "limit(1 << 20)\ntry: bytearray(1 << 31); print('memory')\nexcept MemoryError: print('limited')\n"
        )
        done = subprocess.run([sys.executable, "-I", "-c", line], capture_output=True, text=True, check=True)
    alone, reached = done.stdout.split()[:2]
    assert alone != reached and done.stdout.split()[2] == "limited"
    given: dict[str, Any] = {}
    real = subprocess.run
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setattr(subprocess, "run", lambda *words, **more: given.update(more) or real(*words, **more))
    assert convert(bad(tmp_path / "from", {"w": torch.zeros(2)}), tmp_path / "to")["alone"] == (alone == "True")
    assert given["env"].keys() == {"PATH", "OMP_NUM_THREADS"}


def test_the_command_prints_the_digest(tmp_path: Path) -> None:
    pickled(tmp_path / "from")
    done = forked_kgqa("models", "convert", tmp_path / "from", "--out", tmp_path / "to")
    assert done.code == 0, done.err
    assert f"digest {revision_of(str(tmp_path / 'to'), None)}" in done.out and "50 tensors, 3 of them tied" in done.out
