"""Pickled weights (`pytorch_model.bin`) and GGUF files made safetensors.

A pickle can run code when it is read, so a process of its own reads it: with torch's `weights_only` unpickler, which
builds tensors and refuses every other global, no network where the system allows that, no environment and limits of
memory, time and file size.  What it wrote is read here as safetensors only.  A GGUF file holds numbers and texts;
Transformers reads it in this process.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from kgqa_core.errors import ModelError
from kgqa_core.llm import convert_process
from kgqa_core.llm.hf_load import first_line, revision_of
from kgqa_core.store.outputs import claim_files

PICKLED = ("pytorch_model.bin", "adapter_model.bin")
INDEX = "pytorch_model.bin.index.json"
COPIED = (".json", ".txt", ".model", ".jinja", ".md")
"""Endings of the files that a converted folder keeps: configuration, tokenizer, cards."""


def convert(folder: Path, out: Path, *, force: bool = False) -> dict[str, Any]:
    """Writes the model of a folder with safetensors into `out`, and returns counts; the folder itself stays as it is.

    folder: or a GGUF file, whose weights are written in float32.  digest: of weights, configuration and tokenizer, by
    which caches know the model.  files: of weights.  tensors, and tied: those that shared memory with another, each
    written under its own name.  left_out: files that were not copied.  alone: whether the pickles were read without
    network.
    force: files of an earlier conversion are replaced.  Raises ModelError for a folder without pickled weights, one
    whose pickle names a global that is no tensor's, and weights that are damaged; OutputError for `out`.
    """
    folder = folder.expanduser()
    if folder.is_file():
        return _convert_gguf(folder, out, force)
    weight_map, weights = _weights(folder)
    beside = sorted(file for file in folder.iterdir() if file.name not in weights and file.name != INDEX)
    copied = [file for file in beside if file.is_file() and file.suffix in COPIED]
    names = [*weights.values(), *([_safe(INDEX)] if weight_map else []), *(file.name for file in copied)]
    with claim_files(out, names, inputs=(folder,), force=force).writing() as scratch:
        done = _converted([(folder / name, scratch / target) for name, target in weights.items()])
        places = {tensor: file for file, tensors in done["tensors"].items() for tensor in tensors}
        if lost := [key for key, name in weight_map.items() if places.get(key) != weights[name]]:
            raise ModelError(
                f"{INDEX} names {lost[0]!r} in {weight_map[lost[0]]!r}, which lacks it; download both again"
            )
        total = sum((scratch / file).stat().st_size for file in weights.values())
        if weight_map:
            index = {"metadata": {"total_size": total}, "weight_map": places}
            (scratch / _safe(INDEX)).write_text(json.dumps(index, indent=2), encoding="utf-8")
        for file in copied:
            shutil.copyfile(file, scratch / file.name)
        digest = revision_of(str(scratch), None)
    left_out = [file.name for file in beside if file not in copied]
    counts = {"tensors": len(places), "tied": done["tied"], "bytes": total, "left_out": left_out}
    return {"digest": digest, "files": [*weights.values()], **counts, "alone": done["alone"]}


def _convert_gguf(file: Path, out: Path, force: bool) -> dict[str, Any]:
    """`convert` of a GGUF file: the weights in float32, the tokenizer and the chat template that are in it."""
    if file.suffix != ".gguf":
        raise ModelError(f"'{file}' is neither a model folder nor a GGUF file (*.gguf); name one of these")
    if importlib.util.find_spec("gguf") is None:
        raise ModelError(f"reading '{file}' needs gguf, which is not installed; pip install gguf")
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

    names = ("config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json",
             "chat_template.jinja")  # fmt: skip
    with claim_files(out, names, inputs=(file,), force=force).writing() as scratch:
        place, how = str(file.parent), {"gguf_file": file.name, "local_files_only": True}
        try:
            encoder_decoder = AutoConfig.from_pretrained(place, trust_remote_code=False, **how).is_encoder_decoder
            kind = AutoModelForSeq2SeqLM if encoder_decoder else AutoModelForCausalLM
            quantised = kind.from_pretrained(
                place, use_safetensors=True, trust_remote_code=False, dtype=torch.float32, **how
            )
            del quantised.config.quantization_config  # which would have the folder read as GGUF
            with torch.device("meta"):
                model = type(quantised)(quantised.config)
            model.load_state_dict(quantised.state_dict(), assign=True)
            model.tie_weights()
            model.generation_config = quantised.generation_config
            model.save_pretrained(scratch, max_shard_size="1000TB")
            AutoTokenizer.from_pretrained(place, trust_remote_code=False, **how).save_pretrained(scratch)
        except Exception as fault:  # of the tokenizers' Rust side too, which knows no other class
            raise ModelError(
                f"'{file}' cannot be read as GGUF: {first_line(fault)}; download it again, or take the model's folder"
            ) from fault
        weights = scratch / "model.safetensors"
        with safe_open(weights, "pt") as opened:
            tensors = len(list(opened.keys()))
        counts = {"tensors": tensors, "tied": 0, "bytes": weights.stat().st_size}
        digest = revision_of(str(scratch), None)
    return {"digest": digest, "files": [weights.name], **counts, "left_out": [], "alone": True}


def _weights(folder: Path) -> tuple[dict[str, str], dict[str, str]]:
    """The index of a sharded model, empty of others, and the files of weights with what they become."""
    if not folder.is_dir():
        raise ModelError(f"'{folder}' is not a folder; give the one that holds the model's config.json and weights")
    if any(folder.glob("*.safetensors")):
        raise ModelError(f"model folder '{folder}' has *.safetensors already; use it as it is")
    weight_map: dict[str, str] = {}
    if (folder / INDEX).is_file():
        try:
            held = json.loads((folder / INDEX).read_bytes())["weight_map"]
            weight_map = {str(key): str(name) for key, name in held.items()}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise ModelError(f"{folder / INDEX} is no index of weights; download it again") from None
    files = sorted(set(weight_map.values())) or [name for name in PICKLED if (folder / name).is_file()]
    if not files:
        known = ", ".join([*PICKLED, INDEX])
        raise ModelError(f"model folder '{folder}' has none of {known}; name another folder, or a GGUF file itself")
    for name in files:
        if Path(name).name != name or not (folder / name).is_file():
            raise ModelError(f"{folder / INDEX} names {name!r}, which is not in the folder; download it again")
    return weight_map, {name: _safe(name) for name in files}


def _safe(name: str) -> str:
    """As `model-00001-of-00002.safetensors` for `pytorch_model-00001-of-00002.bin`, and the index likewise."""
    return name.replace("pytorch_model", "model").replace(".bin", ".safetensors")


def _converted(files: list[tuple[Path, Path]]) -> dict[str, Any]:
    """What the process says of the files that it converted.  Raises ModelError where they are not as it says."""
    folder = files[0][0].parent
    most = 4 * max(source.stat().st_size for source, _ in files) + (1 << 20)  # tied weights are written several times
    job = {"files": [[str(source.resolve()), str(target)] for source, target in files], "bytes": most}
    command = [sys.executable, "-I", str(convert_process.__file__)]
    given = {"PATH": os.defpath, "OMP_NUM_THREADS": "1"}  # no key of anybody's
    done = subprocess.run(command, input=json.dumps(job).encode(), capture_output=True, env=given, check=False)
    try:
        result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        for file, tensors in result.get("tensors", {}).items():
            with safe_open(files[0][1].with_name(file), "pt") as opened:
                if sorted(opened.keys()) != tensors:
                    raise ValueError(file)
    except (ValueError, IndexError, SafetensorError, OSError):
        raise ModelError(
            f"the weights in '{folder}' need more memory or time than their size allows, or ended their process "
            f"({done.returncode}): they are damaged or hostile, and were not converted"
        ) from None
    if "fault" not in result:
        return result
    where = folder / str(result["file"])
    if result["refused"]:
        raise ModelError(
            f"{where} is a pickle that calls {str(result['refused'])[:120]!r}, which is no part of a tensor; it was "
            "not read any further, and nothing was converted: get the weights from somebody whom you trust"
        )
    raise ModelError(f"{where} cannot be read as weights: {result['fault']}; download it again")
