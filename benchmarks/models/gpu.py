"""What a GPU gives: the DKG on it, its trainings, encoding and generation, beside the processor of the same machine.

    python -m benchmarks.models.gpu --work DIR [--parts machine,follow,encode,generate,trainings] [--rounds 7]
        [--json benchmarks/results/gpu.json]

machine:    copy_gb: GB/s read and written by a copy on the device; product_tflops: of 8192 x 8192 matrices in float32
            and bfloat16.
follow:     two hops, forward and backward, of batches of questions (graphs of dkg_follow, entities by degree): the
            compiled kernel on the processor against torch on the device; edges_ns: nanoseconds an edge followed once.
encode:     vectors of texts by MiniLM.
generate:   the builtin model, and a Llama of 0.5 · 10^9 random weights in bfloat16, which writes as much as it may.
            A step writes one token of each prompt; weights_gb_a_second: its weights once a step.
trainings:  benchmarks/models/training_run.py twice with `device: cuda` and once with `device: cpu`, on the inputs of
            `benchmarks.models.training`.

The device is warmed up and waited for; medians of rounds.  What a part measured is written as soon as it is there, and
parts of an earlier call on the same device stay in the file.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch

from benchmarks import results_file
from benchmarks.conditions import RESULTS, ROOT, commit_name, conditions, processor
from benchmarks.graph.dkg_follow import SCALES, synthetic
from benchmarks.latency import median_seconds as seconds
from benchmarks.models.llm import facts, question_prompts
from benchmarks.results_file import CONDITIONS
from benchmarks.tables import table
from kgqa_core.dkg.follow import EntityWeights, follow

FIELDS = (
    *CONDITIONS, "device", "processor", "torch", "rounds", "commits/*", "?machine/...", "?follow/...", "?encode/...",
    "?generate/...", "?trainings/...",
)  # fmt: skip
"""What the result file holds (benchmarks/results_file.py)."""
SEED = 7
COPIED = 1 << 32
SIDE = 8192
BATCHES = {"small": 256, "metaqa": 256, "large": 64}
TEXTS = 4096
PROMPTS, NEW_TOKENS = 256, 64
DEVICES = ("cuda", "cpu", "cuda")
TRAININGS = (("small", "rigel"), ("small", "hop_path"), ("atlas", "rewriter"))

Json = dict[str, Any]


def waited(work: Callable[[], Any], rounds: int, device: str) -> float:
    """Median seconds of some work on a device, after one round to warm up."""

    def whole() -> None:
        work()
        if device == "cuda":
            torch.cuda.synchronize()

    return seconds(whole, rounds)


def machine(rounds: int, work: Path) -> Json:
    """Copying and products."""
    source = torch.randn(COPIED // 4, device="cuda")
    target = torch.empty_like(source)
    copied = waited(lambda: target.copy_(source), rounds, "cuda")
    products = {}
    for name, kind in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):
        left, right = (torch.randn(SIDE, SIDE, device="cuda").to(kind) for _ in range(2))
        products[name] = round(2 * SIDE**3 / waited(lambda a=left, b=right: a @ b, rounds, "cuda") / 1e12, 1)
    return {"copy_gb": round(2 * COPIED / copied / 1e9), "product_tflops": products}


def two_hops(name: str, rounds: int) -> Json:
    """One graph of dkg_follow on both devices."""
    scale, batch = SCALES[name], BATCHES[name]
    dkg = synthetic(scale.entities, scale.triples, scale.relations, SEED)
    draw = np.random.default_rng(SEED)
    degree = np.diff(dkg.rows)
    seeds = [[int(seed)] for seed in draw.choice(len(degree), batch, p=degree / degree.sum())]
    torch.manual_seed(SEED)
    logits, goal = torch.randn(2, batch, 2 * dkg.relations), torch.rand(dkg.entities)
    reached: dict[str, torch.Tensor] = {}
    edges = sum(_edges(dkg, seeds))

    def work(device: str) -> None:
        leaf = logits.to(device, copy=True).requires_grad_()
        r = leaf.softmax(-1)
        x = EntityWeights.one_hot(seeds, device=device)
        for hop in range(2):
            x = follow(dkg, x, r[hop])
        (x.weight * wanted[device][x.entity]).sum().backward()
        assert leaf.grad is not None
        reached[device] = leaf.grad

    wanted = {device: goal.to(device) for device in ("cpu", "cuda")}
    spent = {device: waited(lambda d=device: work(d), rounds, device) for device in ("cpu", "cuda")}
    torch.testing.assert_close(reached["cuda"].cpu(), reached["cpu"], rtol=1e-3, atol=1e-3)
    return {
        "entities": dkg.entities, "edges": dkg.edges_stored, "batch": batch,
        "edges_a_question": round(edges / batch, 1),
        "ms_a_question": {device: round(1000 * one / batch, 4) for device, one in spent.items()},
        "edges_ns": {device: round(1e9 * one / edges, 3) for device, one in spent.items()},
        "ratio": round(spent["cpu"] / spent["cuda"], 2),
    }  # fmt: skip


def _edges(dkg: Any, seeds: list[list[int]]) -> list[int]:
    """Edges that two hops follow from each seed."""
    degree = np.diff(dkg.rows)
    found = []
    for (seed,) in seeds:
        one = np.unique(dkg.tail[dkg.rows[seed] : dkg.rows[seed + 1]])
        found.append(int(degree[seed]) + int(degree[one[one < len(degree)]].sum()))
    return found


def follows(rounds: int, work: Path) -> Json:
    """All graphs."""
    return {name: two_hops(name, rounds) for name in SCALES}


def encode(rounds: int, work: Path) -> Json:
    """MiniLM over short texts."""
    from kgqa_core.nn.sentence_encoder import SentenceEncoder

    random = Random(SEED)
    texts = [" ".join(fact) for fact in facts(random, TEXTS)]
    spent = {}
    for device in ("cpu", "cuda"):
        encoder = SentenceEncoder("minilm", device=torch.device(device))
        spent[device] = waited(lambda e=encoder: e.encode(texts), 3, device)
    return {
        "texts": TEXTS, "texts_a_second": {device: round(TEXTS / one) for device, one in spent.items()},
        "ratio": round(spent["cpu"] / spent["cuda"], 2),
    }  # fmt: skip


def generate(rounds: int, work: Path) -> Json:
    """The builtin model on both devices, and a larger one on the device alone."""
    from kgqa_core.config import LlmOptions
    from kgqa_core.llm.factory import load_model
    from kgqa_core.llm.hf import HFModel
    from kgqa_core.llm.protocol import GenerationParams

    prompts = question_prompts(PROMPTS)
    params = GenerationParams(max_new_tokens=16)
    spent = {}
    for device in ("cpu", "cuda"):
        model = load_model("builtin", LlmOptions(device=device))
        spent[device] = waited(lambda m=model: list(m.generate(prompts, params)), 3, device)
    found: Json = {
        "builtin": {
            "prompts": PROMPTS, "prompts_a_second": {device: round(PROMPTS / one, 1) for device, one in spent.items()},
            "ratio": round(spent["cpu"] / spent["cuda"], 2),
        }
    }  # fmt: skip
    folder = larger_model(work / "llama")
    sizes: Json = {}
    params = GenerationParams(max_new_tokens=NEW_TOKENS)
    began = time.perf_counter()
    large = HFModel(folder, device="cuda", dtype="bf16", batch_tokens=1 << 18)
    loaded = time.perf_counter() - began
    weights = sum(one.numel() * one.element_size() for one in large.model.parameters())
    for count in (1, 32, PROMPTS):
        written = list(large.generate(prompts[:count], params))
        whole = waited(lambda n=count: list(large.generate(prompts[:n], params)), 3, "cuda")
        first = GenerationParams(max_new_tokens=1)
        reading = waited(lambda n=count, p=first: list(large.generate(prompts[:n], p)), 3, "cuda")
        steps = max(one.completion_tokens for one in written) - 1
        sizes[str(count)] = {
            "seconds": round(whole, 3), "prompt_tokens": sum(one.prompt_tokens for one in written),
            "new_tokens": sum(one.completion_tokens for one in written), "reading_seconds": round(reading, 3),
            "ms_a_step": round(1000 * (whole - reading) / steps, 2),
            "weights_gb_a_second": round(weights * steps / (whole - reading) / 1e9, 1),
        }  # fmt: skip
    found["llama"] = {
        "parameters": sum(one.numel() for one in large.model.parameters()), "gigabytes": round(weights / 1e9, 2),
        "load_seconds": round(loaded, 1), "batches": sizes,
    }  # fmt: skip
    return found


def larger_model(folder: Path) -> Path:
    """A Llama of 0.5 · 10^9 random weights with the tokenizer of the builtin model."""
    if folder.is_dir():
        return folder
    from transformers import LlamaConfig, LlamaForCausalLM

    from kgqa_core.llm.builtin.model import load_builtin

    tokenizer = load_builtin(device="cpu").tokenizer
    torch.manual_seed(SEED)
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=1024, intermediate_size=4096, num_hidden_layers=30,
        num_attention_heads=16, num_key_value_heads=4, max_position_embeddings=4096, dtype=torch.bfloat16,
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id, bos_token_id=None,
    )  # fmt: skip
    model = LlamaForCausalLM(config).bfloat16()
    tokenizer.save_pretrained(folder)
    model.save_pretrained(folder)
    return folder


def trainings(rounds: int, work: Path) -> Json:
    """Each training twice on the device and once on the processor, with processes of their own.

    What is in DIR/trainings.jsonl is not run again: it holds each run with its commit.
    """
    from benchmarks.models.training import SCORES, prepare

    record = work / "trainings.jsonl"
    lines = record.read_text(encoding="utf-8").splitlines() if record.is_file() else []
    done: dict[str, Json] = {one["run"]: one for one in map(json.loads, lines)}
    for graph, training in TRAININGS:
        for number, device in enumerate(DEVICES):
            name = f"{graph}-{training}-{device}{number}"
            if name in done:
                continue
            found = _trained(training, prepare(graph, work, [training], {}), work / "out" / name, device)
            done[name] = {"run": name, "device": device, "commit": conditions(SEED)["commit"], **found}
            print(json.dumps(done[name]), flush=True)
            with record.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(done[name]) + "\n")
    found = {}
    for graph, training in TRAININGS:
        own = [one for name, one in done.items() if name.startswith(f"{graph}-{training}-")]
        found[f"{graph}/{training}"] = {"score": SCORES[training], "runs": own}
    return found


def _trained(training: str, inputs: Path, out: Path, device: str) -> Json:
    command = [sys.executable, str(ROOT / "benchmarks" / "training_run.py"), training, str(inputs), str(out)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [*command, str(SEED), json.dumps({"device": device})], env=environment, cwd=ROOT, text=True,
        stdout=subprocess.PIPE, check=True,
    )  # fmt: skip
    found: Json = json.loads(done.stdout.strip().splitlines()[-1])
    return found


PARTS: Mapping[str, Callable[[int, Path], Json]] = {
    "machine": machine, "follow": follows, "encode": encode, "generate": generate, "trainings": trainings
}  # fmt: skip


def tables(found: Mapping[str, Any]) -> str:
    """The tables of docs/performance.md."""
    made, own = found["conditions"], found["machine"]
    rows = [
        (name, f"{one['entities']:,}", f"{one['edges']:,}", f"{one['batch']}", f"{one['edges_a_question']:,.0f}",
         *(f"{one['ms_a_question'][device]:.3f}" for device in ("cpu", "cuda")),
         *(f"{one['edges_ns'][device]:.2f}" for device in ("cpu", "cuda")), f"{one['ratio']:.1f}×")
        for name, one in found["follow"].items()
    ]  # fmt: skip
    head = (
        "graph", "entities", "edges", "batch", "edges a question", "processor, ms a question", "GPU",
        "processor, ns an edge", "GPU", "GPU faster by",
    )  # fmt: skip
    text = (
        "## On a GPU\n\n"
        f"`benchmarks/models/gpu.py`, {found['device']}, {made['cores']} cores of {found['processor']}, torch "
        f"{found['torch']}, commit {commit_name(made['commit'])} ({_commits(found)}), {made['date']}, "
        f"seed {made['seed']}, medians of {found['rounds']} rounds. This GPU copies {own['copy_gb']:,} GB/s (read and "
        "written) and multiplies float32 matrices "
        f"at {own['product_tflops']['float32']} and bfloat16 at {own['product_tflops']['bfloat16']} · 10¹² "
        "operations a second.\n\nTwo hops through the graph, forward and backward, all questions of a batch at "
        f"once. The 14 bytes that an edge moves at least take {14 / own['copy_gb']:.4f} ns at the speed of copying: "
        "what is left goes into sums at random places, lists of what was reached and starting kernels.\n\n"
        + table(head, rows, right=True)
    )
    rows = [row for name, one in found["trainings"].items() for row in _training_rows(name, one)]
    head = (
        "training", "commit", "dev score", "processor, s", "GPU, s", "GPU faster by", "score, processor", "score, GPU",
        "same weights twice",
    )  # fmt: skip
    text += "\nTrainings as shipped, on the inputs of `benchmarks/models/training.py`:\n\n" + table(
        head, rows, right=True
    )
    builtin, llama = found["generate"]["builtin"], found["generate"]["llama"]
    encoded = found["encode"]
    rows = [
        (count, f"{one['prompt_tokens']:,}", f"{one['new_tokens']:,}", f"{one['seconds']:.2f}",
         f"{one['reading_seconds']:.3f}", f"{one['ms_a_step']:.1f}",
         f"{100 * one['weights_gb_a_second'] / own['copy_gb']:.1f} %", f"{one['new_tokens'] / one['seconds']:,.0f}")
        for count, one in llama["batches"].items()
    ]  # fmt: skip
    head = (
        "prompts", "their tokens", "new tokens", "s", "of which reading, s", "ms a step",
        "weights read, of the bandwidth", "new tokens a second",
    )  # fmt: skip
    return (
        text + f"\nMiniLM encodes {encoded['texts_a_second']['cpu']:,} texts a second on the processor and "
        f"{encoded['texts_a_second']['cuda']:,} on the GPU. The builtin model answers "
        f"{builtin['prompts_a_second']['cpu']:,} and {builtin['prompts_a_second']['cuda']:,} prompts a second.\n\n"
        f"A Llama of {llama['parameters'] / 1e6:,.0f} million random weights in bfloat16 ({llama['gigabytes']} GB, "
        f"loaded in {llama['load_seconds']} s), which writes {NEW_TOKENS} tokens of each prompt:\n\n"
        + table(head, rows, right=True)
    )


def _commits(found: Mapping[str, Any]) -> str:
    """The parts that were measured at other commits."""
    last = found["conditions"]["commit"]
    other = [f"{part} {commit_name(commit)}" for part, commit in found["commits"].items() if commit != last]
    return ", ".join(other) or "all parts"


def _training_rows(name: str, one: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """A row for each commit that a training was run at."""
    rows = []
    for commit in dict.fromkeys(run["commit"] for run in one["runs"]):
        own = [run for run in one["runs"] if run["commit"] == commit]
        cpu, cuda = ([run for run in own if run["device"] == device] for device in ("cpu", "cuda"))
        fastest = min((run["seconds"] for run in cuda), default=0)
        same = len({run["digest"] for run in cuda}) == 1
        rows.append(
            (name, commit_name(commit), one["score"],
             *(" / ".join(f"{run['seconds']:.1f}" for run in side) for side in (cpu, cuda)),
             f"{min(run['seconds'] for run in cpu) / fastest:.1f}×" if cpu and cuda else "",
             *(" / ".join(f"{run['dev_score']:.4f}" for run in side) for side in (cpu, cuda)),
             "" if len(cuda) < 2 else "yes" if same else "no")
        )  # fmt: skip
    return rows


def main() -> None:
    """Measures part by part and writes the JSON after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path, default=RESULTS / "gpu.json")
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    if not torch.cuda.is_available():
        raise SystemExit("torch finds no CUDA device here; run this where `torch.cuda.is_available()`")
    before = json.loads(given.json.read_text(encoding="utf-8")) if given.json.is_file() else {}
    device = torch.cuda.get_device_name(0)
    document = {
        **(before if before.get("device") == device else {}), "conditions": conditions(SEED), "device": device,
        "processor": processor(), "torch": torch.__version__, "rounds": given.rounds,
    }  # fmt: skip
    for part in given.parts.split(","):
        began = time.perf_counter()
        document[part] = PARTS[part](given.rounds, given.work)
        document["commits"] = {**document.get("commits", {}), part: document["conditions"]["commit"]}
        print(part, f"{time.perf_counter() - began:.1f} s", json.dumps(document[part]), flush=True)
        results_file.write(given.json, document, FIELDS)


if __name__ == "__main__":
    main()
