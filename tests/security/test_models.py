"""Models come from safetensors only, and nothing here unpickles or runs code of a model's author."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from kgqa_core.config import LlmOptions, make_profile
from kgqa_core.errors import ModelError
from kgqa_core.llm.factory import load_model
from kgqa_core.nn.encoders import load_pretrained
from tests.support.models import save_causal, save_lora

HOUSE = Path(__file__).resolve().parents[2]
OURS = sorted(path for house in ("kgqa", "kgqa_core", "tasks", "flows") for path in (HOUSE / house).rglob("*.py"))
UNPICKLERS = {
    "pickle.load", "pickle.loads", "pickle.Unpickler", "dill.load", "dill.loads", "joblib.load", "torch.load",
    "cloudpickle.load", "cloudpickle.loads", "marshal.load", "marshal.loads", "shelve.open", "yaml.load",
    "yaml.unsafe_load", "yaml.full_load", "eval", "exec", "os.system", "torch.hub.load", "pandas.read_pickle",
}  # fmt: skip
OWN_BYTES = {("tasks/engine/shards.py", "pickle.loads"), ("kgqa_core/llm/convert_process.py", "torch.load")}
"""Where something is unpickled: an exception that the same line has pickled; weights, by the process of `convert`."""


class Canary:
    """Writes a file when it is unpickled."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self) -> tuple[Callable[[Path], object], tuple[Path]]:
        return Path.touch, (self.place,)


@functools.cache
def words(path: Path) -> frozenset[str]:
    """Every word of a file."""
    return frozenset(re.findall(r"\w+", path.read_text(encoding="utf-8")))


def calls_of(*wanted: str) -> list[tuple[Path, str, ast.Call]]:
    """Calls in our code, of the files only that hold all words of one of these names."""
    parts = [set(name.split(".")) for name in wanted]
    files = [path for path in OURS if any(part <= words(path) for part in parts)]
    return [(path, name, node) for path in files for name, node in calls(path)]


@functools.cache
def calls(path: Path) -> list[tuple[str, ast.Call]]:
    """Every call of a file by the full name of what is called."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {one.asname or one.name: one.name for one in node.names}
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            first, dot, rest = dotted(node.func).partition(".")
            found.append((names.get(first, first) + dot + rest, node))
    return found


def dotted(node: ast.expr) -> str:
    """A name with its attributes; what is no name is a question mark."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


def given(node: ast.Call) -> dict[str | None, object]:
    return {one.arg: one.value.value if isinstance(one.value, ast.Constant) else one.value for one in node.keywords}


def test_the_reader_of_code_sees_calls_under_other_names(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("from pickle import loads as l\nimport torch as t\nl(b'')\nt.load('x')\n")
    assert [name for name, _ in calls(tmp_path / "a.py")] == ["pickle.loads", "torch.load"]


def test_nothing_is_unpickled_or_evaluated() -> None:
    found = {(str(path.relative_to(HOUSE)), name) for path, name, _ in calls_of(*UNPICKLERS) if name in UNPICKLERS}
    assert found == OWN_BYTES
    assert all(given(node)["weights_only"] is True for _, name, node in calls_of("torch.load") if name == "torch.load")
    importers = [path for path in OURS if "convert_process" in words(path)]
    assert [path.name for path in importers] == ["convert.py"], "it runs in a process of its own"


def test_arrays_are_read_without_pickles() -> None:
    kinds = ("numpy.load", "numpy.save")
    loads = [node for _, name, node in calls_of(*kinds) if name in kinds]
    assert len(loads) >= 3 and all(given(node).get("allow_pickle") is False for node in loads)


def test_no_model_brings_its_own_code_and_all_weights_are_safetensors() -> None:
    loads = [
        (path, name, given(node))
        for path, name, node in calls_of("from_pretrained")
        if name.endswith(".from_pretrained") and not name.startswith("peft.")
    ]
    assert len(loads) >= 6
    for path, name, options in loads:
        assert options.get("trust_remote_code") is False, f"{path}: {name}"
        if "Config" not in name and "Tokenizer" not in name:
            assert options.get("use_safetensors") is True, f"{path}: {name}"
    texts = [path.read_text(encoding="utf-8") for path in OURS]
    assert not any("trust_remote_code=True" in text for text in texts)


@pytest.fixture(scope="module")
def pickled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A model folder whose weights are a pickle, and the file that unpickling it would write."""
    folder = tmp_path_factory.mktemp("models") / "model"
    save_causal(folder)
    (folder / "model.safetensors").unlink()
    place = folder.parent / "unpickled"
    torch.save(Canary(place), folder / "pytorch_model.bin")
    return folder, place


def test_the_canary_of_the_pickled_model_sings(pickled: tuple[Path, Path], tmp_path: Path) -> None:
    place = tmp_path / "sung"
    torch.save(Canary(place), tmp_path / "x.bin")
    torch.load(tmp_path / "x.bin", weights_only=False)
    assert place.exists()


def test_a_language_model_of_pickled_weights_is_refused(pickled: tuple[Path, Path]) -> None:
    folder, place = pickled
    with pytest.raises(ModelError, match=r"has no \*\.safetensors"):
        load_model(f"hf:{folder}", LlmOptions(device="cpu"))
    assert not place.exists()


def test_an_encoder_of_pickled_weights_is_refused(pickled: tuple[Path, Path]) -> None:
    folder, place = pickled
    with pytest.raises(ModelError, match="safetensors"):
        load_pretrained(str(folder), "retriever")
    assert not place.exists()


def test_an_adapter_of_pickled_weights_is_refused(tmp_path: Path) -> None:
    model = save_causal(tmp_path / "model")
    adapter = save_lora(model, tmp_path / "adapter")
    (adapter / "adapter_model.safetensors").unlink()
    torch.save(Canary(tmp_path / "unpickled"), adapter / "adapter_model.bin")
    with pytest.raises(ModelError, match=r"has no adapter_model\.safetensors"):
        load_model(f"hf:{model}", LlmOptions(device="cpu"), adapter=adapter)
    assert not (tmp_path / "unpickled").exists()


@pytest.mark.parametrize("key", ["rewriter.base", "answering.answerer", "rigel.encoder"])
def test_pickled_weights_are_refused_before_anything_starts(
    key: str, pickled: tuple[Path, Path], tmp_path: Path
) -> None:
    from flows.preflight import check

    folder, place = pickled
    (tmp_path / "graph.tsv").write_text("a\tknows\tb\n")
    row = '{"id": "%d", "question": "a?", "topic_entities": ["a"], "answers": ["b"]}\n'
    (tmp_path / "asked.jsonl").write_text("".join(row % number for number in range(3)))
    section, _, name = key.partition(".")
    profile = make_profile(
        {
            "kg": {"files": [str(tmp_path / "graph.tsv")]},
            "questions": {"path": str(tmp_path / "asked.jsonl")},
            "retrieval": {"retrievers": ["rigel"]},
            "answering": {"knowledge": ["rigel/rewritten"]},
        },
        {section: {name: str(folder) if name == "encoder" else f"hf:{folder}"}},
    )
    with pytest.raises(ModelError, match="safetensors"):
        check(profile)
    assert not place.exists()
