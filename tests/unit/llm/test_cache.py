"""The file of paid answers: what a key sees, and that nothing is lost by kills, damage or company."""

from __future__ import annotations

import gc
import hashlib
import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kgqa_core.config import LlmOptions
from kgqa_core.errors import StorageError
from kgqa_core.llm import cache as cache_module
from kgqa_core.llm.cache import FILE, Identity, Request, ResponseCache, open_cache
from kgqa_core.llm.openai_api import OpenAIModel
from kgqa_core.llm.paid import PromptBatch, generate_cached
from kgqa_core.llm.protocol import Completion, GenerationParams
from kgqa_core.store.artifacts import canonical_json
from tests.support.chat_server import ROOT, ChatServer

ENDPOINT = Identity("openai", "http://127.0.0.1:1/v1", "m", "m")
REQUEST = Request(ENDPOINT, GenerationParams(), "Who?")
KEYED = (
    '["openai","http://127.0.0.1:1/v1","m","m","{\\"max_new_tokens\\":32,\\"num_beams\\":1,\\"seed\\":null,\\"stop\\":[],'
    '\\"temperature\\":0.0,\\"top_k\\":0,\\"top_p\\":1.0}",[{"content":"Who?","role":"user"}],0,0,""]'
)
"""What the key of REQUEST is the digest of."""

WRITER = """
import sys
from pathlib import Path
from kgqa_core.llm.cache import Identity, Request, open_cache
from kgqa_core.llm.protocol import Completion, GenerationParams
cache = open_cache(Path(sys.argv[1]))
for number in range(int(sys.argv[3])):
    request = Request(Identity("hf", "", sys.argv[2], "r"), GenerationParams(), f"prompt {number}")
    cache.put(request, Completion(f"{sys.argv[2]} {number}"))
    if number % 7 == 0:
        cache.flush()
        print(number, flush=True)
cache.flush()
"""


def writer(folder: Path, name: str, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder), name, str(count)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )


def written(name: str, count: int) -> list[Request]:
    identity = Identity("hf", "", name, "r")
    return [Request(identity, GenerationParams(), f"prompt {number}") for number in range(count)]


def released(folder: Path) -> None:
    """Waits until this process has closed the file, so that all is in it and none in its log."""
    deadline = time.monotonic() + 120
    while (folder / f"{FILE}-wal").exists():
        gc.collect()
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_key_sees_everything_that_a_completion_depends_on() -> None:
    others = [
        replace(REQUEST, identity=replace(ENDPOINT, backend="hf")),
        replace(REQUEST, identity=replace(ENDPOINT, endpoint="http://127.0.0.1:2/v1")),
        replace(REQUEST, identity=replace(ENDPOINT, model="n")),
        replace(REQUEST, identity=replace(ENDPOINT, revision="2")),
        replace(REQUEST, params=GenerationParams(max_new_tokens=33)),
        replace(REQUEST, params=GenerationParams(temperature=0.5)),
        replace(REQUEST, params=GenerationParams(stop=("\n",))),
        replace(REQUEST, params=GenerationParams(top_k=50)),
        replace(REQUEST, params=GenerationParams(num_beams=4)),
        replace(REQUEST, prompt="Who"),
        replace(REQUEST, sample=1),
        replace(REQUEST, attempt=1),
        replace(REQUEST, group="ab"),
    ]
    assert len({REQUEST.key, *(other.key for other in others)}) == len(others) + 1
    assert Request(ENDPOINT, GenerationParams(), "Who?").key == REQUEST.key


def test_the_key_of_a_request_never_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed key would pay for everything again."""
    hashed: list[str] = []

    def spy(value: Any) -> str:
        hashed.append(canonical_json(value))
        return hashed[-1]

    monkeypatch.setattr(cache_module, "canonical_json", spy)
    key = Request(ENDPOINT, GenerationParams(), "Who?").key
    assert hashed[-1] == KEYED
    assert key == hashlib.sha256(KEYED.encode()).hexdigest()


def test_what_was_put_is_there_after_reopening(tmp_path: Path) -> None:
    cache = open_cache(tmp_path)
    spent = replace(REQUEST, sample=1)
    cache.put(REQUEST, Completion("Ada 阿达", "length", 3, 4))
    cache.put(spent, Completion("?", "stop", 1, 1), "invents '7'")
    cache.flush()
    del cache
    released(tmp_path)
    found = open_cache(tmp_path).get([REQUEST, spent, replace(REQUEST, sample=2)])
    assert set(found) == {REQUEST.key, spent.key}
    assert found[REQUEST.key].completion == Completion("Ada 阿达", "length", 3, 4)
    assert (found[REQUEST.key].reason, found[spent.key].reason) == (None, "invents '7'")


def test_without_a_folder_it_lives_in_memory_and_alone() -> None:
    one, other = open_cache(None), open_cache(None)
    one.put(REQUEST, Completion("x"))
    one.flush()
    assert one.get([REQUEST])[REQUEST.key].completion.text == "x"
    assert other.get([REQUEST]) == {}


def test_thousands_of_keys_are_looked_up_at_once(tmp_path: Path) -> None:
    cache = open_cache(tmp_path)
    requests = [replace(REQUEST, prompt=f"p{number}") for number in range(1201)]
    for request in requests:
        cache.put(request, Completion(request.prompt))
    cache.flush()
    found = cache.get(requests)
    assert [found[request.key].completion.text for request in requests] == [request.prompt for request in requests]


def test_two_processes_write_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    processes = [writer(tmp_path, name, 300) for name in ("a", "b")]
    for process in processes:
        process.communicate(timeout=120)
        assert process.returncode == 0
    for name in ("a", "b"):
        requests = written(name, 300)
        found = open_cache(tmp_path).get(requests)
        assert [found[request.key].completion.text for request in requests] == [f"{name} {n}" for n in range(300)]


@pytest.mark.parametrize("lines", [1, 9, 30])
def test_what_was_flushed_outlives_a_killed_process(lines: int, tmp_path: Path) -> None:
    process = writer(tmp_path, "a", 10**6)
    assert process.stdout is not None
    last = [int(process.stdout.readline()) for _ in range(lines)][-1]
    process.send_signal(signal.SIGKILL)
    process.communicate()
    requests = written("a", last + 1)
    assert len(open_cache(tmp_path).get(requests)) == last + 1


@pytest.mark.parametrize("damage", ["no database", "broken pages"])
def test_a_damaged_file_is_moved_aside_with_a_message_and_never_overwritten(damage: str, tmp_path: Path) -> None:
    cache = open_cache(tmp_path)
    for number in range(500):
        cache.put(replace(REQUEST, prompt=f"p{number}" * 50), Completion("x" * 200))
    cache.flush()
    del cache
    released(tmp_path)
    path = tmp_path / FILE
    data = path.read_bytes()
    path.write_bytes(b"not a database at all" * 100 if damage == "no database" else data[:4096] + b"\xa5" * len(data))
    bad = path.read_bytes()
    with pytest.raises(StorageError, match=r"damaged.*kept as responses\.sqlite\.damaged-.*run the same command"):
        open_cache(tmp_path).get([REQUEST])
    (aside,) = (file for file in tmp_path.glob(f"{FILE}.damaged-*") if not file.name.endswith(("-wal", "-shm")))
    assert aside.read_bytes() == bad
    fresh = open_cache(tmp_path)
    fresh.put(REQUEST, Completion("again"))
    fresh.flush()
    assert fresh.stats()["entries"] == 1


def test_a_folder_that_cannot_be_written_is_named_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="--home"):
        open_cache(tmp_path / "file")


def test_stats_export_and_clear(tmp_path: Path) -> None:
    cache = open_cache(tmp_path / "cache")
    local = replace(REQUEST, identity=Identity("builtin", "", "", "r"))
    cache.put(REQUEST, Completion("x", "stop", 10, 2))
    cache.put(replace(REQUEST, attempt=1), Completion("", "empty", 10, 0), "empty")
    cache.put(local, Completion("y", "stop", 5, 1))
    stats = cache.stats()
    assert {name: stats[name] for name in ("entries", "accepted", "spent", "prompt_tokens", "completion_tokens")} == {
        "entries": 3, "accepted": 2, "spent": 1, "prompt_tokens": 25, "completion_tokens": 3,
    }  # fmt: skip
    assert [row["entries"] for row in stats["models"]] == [1, 2] and stats["bytes"] > 0
    assert cache.export(tmp_path / "out.jsonl") == 3
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()]
    assert [row["key"] for row in rows] == sorted(row["key"] for row in rows)
    assert {row["state"] for row in rows} == {"accepted", "spent"} and rows[0]["params"]["max_new_tokens"] == 32
    assert cache.clear(spent_only=True) == 1
    assert cache.clear(model="m") == 1
    assert list(cache.get([REQUEST, local])) == [local.key]
    assert cache.clear() == 1 and cache.stats()["entries"] == 0


def test_the_latest_completions_of_a_model_are_told_with_their_prompts() -> None:
    cache = open_cache(None)
    sent = [replace(REQUEST, prompt=f"Tell {number}") for number in range(3)]
    for number, request in enumerate(sent):
        cache.put(request, Completion(f"text {number}", "stop", 10, number), "empty" if number == 1 else None)
    cache.put(replace(REQUEST, prompt="Ask"), Completion("x", "stop", 1, 1))
    cache.put(replace(sent[0], identity=replace(ENDPOINT, model="n")), Completion("x", "stop", 1, 1))
    cache.flush()
    found = cache.latest(ENDPOINT, "Tell", 10)
    assert [past.stored for past in found] == sorted((past.stored for past in found), reverse=True)
    rows = sorted((past.prompt, past.text, past.prompt_tokens, past.completion_tokens, past.accepted) for past in found)
    assert rows == [(f"Tell {number}", f"text {number}", 10, number, number != 1) for number in range(3)]
    assert {past.max_new_tokens for past in found} == {REQUEST.params.max_new_tokens}
    assert cache.latest(ENDPOINT, "Tell", 2) == found[:2]


def test_neither_keys_nor_passwords_reach_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    with ChatServer() as server:
        url = server.base_url.replace("http://", "http://user:pass-word@") + "?token=tok-secret"
        cache = open_cache(tmp_path)
        generate_cached(
            OpenAIModel("m", LlmOptions(base_url=server.base_url)), PromptBatch(["a"], GenerationParams(), cache=cache)
        )
        generate_cached(OpenAIModel("n", LlmOptions(base_url=url)), PromptBatch(["b"], GenerationParams(), cache=cache))
        cache.export(tmp_path / "export.jsonl")
    assert server.headers[0]["authorization"] == "Bearer sk-very-secret"
    assert server.headers[1]["authorization"].startswith("Basic ")
    assert (tmp_path / "export.jsonl").read_text().count(f'"endpoint": "{server.base_url}"') == 2
    for file in tmp_path.iterdir():
        data = file.read_bytes()
        assert not any(secret in data for secret in (b"sk-very", b"pass-word", b"tok-secret", b"Authorization"))


def test_a_cache_at_a_given_path_is_shared_with_the_folder(tmp_path: Path) -> None:
    one, other = ResponseCache(tmp_path / FILE), open_cache(tmp_path)
    one.put(REQUEST, Completion("x"))
    one.flush()
    assert list(other.get([REQUEST])) == [REQUEST.key]
