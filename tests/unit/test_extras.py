"""Where an extra is not installed, its options are refused with the command that installs it, and nothing else is."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from flows.preflight import check
from kgqa_core.answering.registry import KNOWLEDGE_FORMATS
from kgqa_core.config import PassagesOptions, make_profile
from kgqa_core.errors import ConfigError
from kgqa_core.extras import EXTRAS, require_extra
from kgqa_core.monitor import QUIET
from kgqa_core.nn.encoders import Encoder
from kgqa_core.papers.ltgen.relation_ranking.amr import read_penman
from kgqa_core.papers.ltgen.relation_ranking.network import AmrNetwork
from kgqa_core.passages import bm25, dense
from kgqa_core.retrieval.registry import RETRIEVERS
from kgqa_core.store.remote import RemoteStore
from kgqa_core.workspace import Workspace
from tasks.engine.key import _version
from tests.support.command import ROOT

NEEDED_BY: dict[str, dict[str, object]] = {
    "amr": {"retrieval": {"retrievers": ["rank_amr"]}, "answering": {"knowledge": ["none"]}},
    "passages": {"answering": {"knowledge": ["none", "passages"]}, "passages": {"corpus": "texts.jsonl"}},
    "neo4j": {"kg": {"files": ["bolt://127.0.0.1:7687"]}},
    "cluster": {"operations": {"runner": {"kind": "dask"}}},
}
"""Options of a profile by the extra that they need; the extra `store` is needed by the variable KGQA_STORE."""

UNUSED_TO_ASK = (*EXTRAS["run"], "pandas", "sklearn", "transformers", "sentence_transformers", "matplotlib")
"""Modules without which a graph is asked and served."""


@pytest.fixture
def absent(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """An extra whose modules cannot be imported."""
    extra = str(request.param)
    for name in [name for name in sys.modules if name.partition(".")[0] in EXTRAS[extra]]:
        monkeypatch.delitem(sys.modules, name)
    for name in EXTRAS[extra]:
        monkeypatch.setitem(sys.modules, name, None)
    return extra


@pytest.mark.parametrize("absent", sorted(set(EXTRAS) - {"run", "languages"}), indirect=True)
def test_the_absence_of_an_extra_is_found_before_a_run_starts(
    absent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "graph.tsv").write_text("a\tknows\tb\n")
    row = '{{"id": "{0}", "question": "a?", "topic_entities": ["a"], "answers": ["b"], "split": "{0}"}}\n'
    (tmp_path / "own.jsonl").write_text("".join(row.format(split) for split in ("train", "dev", "test")))
    own = {"kg": {"files": [str(tmp_path / "graph.tsv")]}, "questions": {"path": str(tmp_path / "own.jsonl")}}
    check(make_profile(own))
    if absent == "store":
        monkeypatch.setenv("KGQA_STORE", "s3://me:secret@bucket/prefix")
    with pytest.raises(ConfigError) as fault:
        check(make_profile(own, NEEDED_BY.get(absent, {})))
    message = str(fault.value)
    assert f"pip install 'kgqa[{absent}]'" in message and f"-e '.[{absent}]'" in message
    assert EXTRAS[absent][0] in message and "secret" not in message


@pytest.mark.parametrize("name", [*RETRIEVERS, "rank_pair with graphs", *KNOWLEDGE_FORMATS])
def test_every_retriever_and_format_names_the_extra_that_it_needs_and_the_others_do_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    modules = {module for extra, own in EXTRAS.items() if extra != "run" for module in own}
    for module in {*modules, *(loaded for loaded in sys.modules if loaded.partition(".")[0] in modules)}:
        monkeypatch.setitem(sys.modules, module, None)
    version = importlib.metadata.version
    monkeypatch.setattr(importlib.metadata, "version", lambda name: version("absent" if name in modules else name))
    (tmp_path / "graph.tsv").write_text("a\tknows\tb\n")
    row = {"question": "a?", "topic_entities": ["a"], "answers": ["b"], "relation_path": ["knows"]}
    rows = [json.dumps({"id": split, "split": split, **row}) + "\n" for split in ("train", "dev", "test")]
    (tmp_path / "own.jsonl").write_text("".join(rows))
    plain = name.partition(" ")[0]
    own: dict[str, object] = {"kg": {"files": [str(tmp_path / "graph.tsv")]}}
    own["questions"] = {"path": str(tmp_path / "own.jsonl")}
    if plain in RETRIEVERS:
        graphs = {"amr_graphs": "graphs.txt"} if plain != name else {}
        own |= {"retrieval": {"retrievers": [plain]}, "answering": {"knowledge": ["none"]}, "relation_ranking": graphs}
        profile = make_profile(own)
        spec = RETRIEVERS[plain]
        extra = spec.extra(spec.options(profile))
        packages: tuple[str, ...] = (*spec.packages, *spec.training_packages)
    else:
        knowledge = name if name in ("none", "passages") else f"random/{name}"
        profile = make_profile(
            {**own, "retrieval": {"retrievers": ["random"]}, "answering": {"knowledge": [knowledge]}}
        )
        extra, packages = KNOWLEDGE_FORMATS[name].extra, ()
    if extra is None:
        check(profile)
        assert all(isinstance(_version(package), str) for package in packages), "its stages have keys"
    else:
        with pytest.raises(ConfigError, match=rf"{plain}.*kgqa\[{extra}\]"):
            check(profile)


WITHOUT = """
import os, sys
sys.path.insert(0, {root!r})
sys.modules.update(dict.fromkeys({modules!r}))
{more}
from flows.cli.start import main
main()
"""


def without(modules: Sequence[str], folder: Path, *words: str, more: str = "") -> subprocess.CompletedProcess[str]:
    """`kgqa` where some modules cannot be imported, after a line of code."""
    code = WITHOUT.format(root=str(ROOT), modules=modules, more=more)
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=100)


def test_a_graph_is_asked_and_what_serves_imported_without_what_runs_need_and_a_run_names_the_extra(
    tmp_path: Path,
) -> None:
    (tmp_path / "graph.tsv").write_text("Ada Stone\twrote\tThe Grey Harbour\n")
    words = ("ask", "--kg", "graph.tsv", "--json", "Who wrote The Grey Harbour?")
    serving = "import kgqa_core.serving.run, kgqa_core.serving.http, kgqa_core.serving.mcp_http"
    asked = without(UNUSED_TO_ASK, tmp_path, *words, more=serving)
    assert json.loads(asked.stdout)["answer"] == "Ada Stone", asked.stderr
    run = without(UNUSED_TO_ASK, tmp_path, "run", "--kg", "graph.tsv")
    assert run.returncode == 2 and "this command needs prefect" in run.stderr and "'kgqa[run]'" in run.stderr


@pytest.mark.parametrize("absent", ["passages"], indirect=True)
def test_an_index_of_passages_names_the_extra(absent: str, tmp_path: Path) -> None:
    for use in (
        lambda: bm25.build(Workspace(tmp_path), [["a text"]], 1),
        lambda: bm25.Bm25Index(tmp_path, 3),
        lambda: dense._index("flat", np.zeros((1, 4), dtype=np.int16), 0, QUIET),
        lambda: dense.DenseIndex(tmp_path, PassagesOptions(), "weights"),
    ):
        with pytest.raises(ConfigError, match=r"kgqa\[passages\]"):
            use()


@pytest.mark.parametrize("absent", ["amr"], indirect=True)
def test_a_ranker_over_amr_graphs_names_the_extra(absent: str) -> None:
    with pytest.raises(ConfigError, match=r"kgqa\[amr\]"):
        read_penman("(d / develop-02)")
    with pytest.raises(ConfigError, match=r"kgqa\[amr\]"):
        AmrNetwork(cast(Encoder, None), 1, 1)


@pytest.mark.parametrize("absent", ["store"], indirect=True)
def test_a_store_in_a_bucket_names_the_extra_and_one_in_a_folder_needs_none(
    absent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KGQA_STORE", f"file://{tmp_path}")
    assert RemoteStore.current() is not None
    monkeypatch.setenv("KGQA_STORE", "s3://bucket")
    with pytest.raises(ConfigError, match=r"KGQA_STORE=s3://bucket needs s3fs.*kgqa\[store\]"):
        RemoteStore.current()


def test_only_the_modules_that_an_option_needs_are_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    require_extra("cluster", "a cluster of Dask", ("prefect_dask", "distributed"))
    with pytest.raises(ConfigError, match="^a cluster needs ray, not installed here; .*, or choose thread$"):
        require_extra("cluster", "a cluster", instead=", or choose thread")
