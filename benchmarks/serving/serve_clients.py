"""What the usual clients get from a system that is served: a transcript, and how long `kgqa ask` takes.

    python -m benchmarks.serving.serve_clients --home HOME [--run ID] [--question TEXT --follow TEXT --unknown TEXT]
        [--json benchmarks/results/serve_clients.json] [--out benchmarks/results/serve_clients.md]

`kgqa serve` answers the OpenAI client (plain, streaming, a dialogue), the official MCP client over HTTP and `/ask`.
`kgqa mcp` answers that client over stdio.  `kgqa ask` is timed as a whole process, median of ROUNDS, with that server
and without (`--own-process`).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mcp import Client
from mcp.client.stdio import StdioServerParameters
from openai import OpenAI

from benchmarks import results_file
from benchmarks.conditions import RESULTS, ROOT, conditions
from benchmarks.kgqa_command import kgqa
from benchmarks.results_file import CONDITIONS
from kgqa_core.runs.records import current_champions
from tests.support.kgqa_serve import served

FIELDS = (*CONDITIONS, "graph", "transcripts/*/...", "ask/with_server", "ask/without", "ask/rounds")
"""What the result file holds (benchmarks/results_file.py)."""
SEED, ROUNDS, SHOWN = 7, 5, 900
Turn = tuple[str, str]
"""What a client did, and what it got."""


def openai_turns(url: str, question: str, follow: str, unknown: str) -> list[Turn]:
    """The OpenAI client: plain, streaming, a dialogue, and what the graph does not hold."""
    client = OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
    [model] = client.models.list().data
    turns: list[Turn] = [("client.models.list()", model.id)]

    def ask(*texts: str) -> Any:
        roles = ("user", "assistant")
        messages: Any = [{"role": roles[place % 2], "content": text} for place, text in enumerate(texts)]
        return client.chat.completions.create(model=model.id, messages=messages)

    first = ask(question)
    text = str(first.choices[0].message.content)
    turns.append((f"create(…, {question!r})", text))
    more = {name: first.kgqa[name] for name in ("answers", "form", "road", "confidence", "calibrated")}
    turns.append(("reply.kgqa", json.dumps(more, ensure_ascii=False)))
    messages: Any = [{"role": "user", "content": question}]
    pieces = client.chat.completions.create(model=model.id, messages=messages, stream=True)
    texts = [piece.choices[0].delta.content or "" for piece in pieces if piece.choices]
    same = "the same text" if "".join(texts) == text else f"ANOTHER text: {''.join(texts)}"
    turns.append((f"create(…, {question!r}, stream=True)", f"{len(texts)} pieces, together {same}"))
    turns.append(
        (f"create(…, [that dialogue, {follow!r}])", str(ask(question, text, follow).choices[0].message.content))
    )
    turns.append((f"create(…, {unknown!r})", str(ask(unknown).choices[0].message.content)))
    return turns


async def mcp_turns(server: Any, question: str) -> list[Turn]:
    """The official MCP client: its tools, a question, an entity, a form, the schema, resources and prompts."""
    async with Client(server) as client:
        tools = (await client.list_tools()).tools
        turns: list[Turn] = [("client.list_tools()", ", ".join(tool.name for tool in tools))]
        reply = (await client.call_tool("ask", {"question": question})).structured_content or {}
        shown = {name: reply.get(name) for name in ("answers", "confidence", "proof", "form")}
        turns.append((f"call_tool('ask', {question!r})", json.dumps(shown, ensure_ascii=False)))
        topic = reply["topics"][0]["name"]
        found = (
            await client.call_tool("search_entities", {"text": topic.lower(), "limit": 2})
        ).structured_content or {}
        names = [(one["name"], one["key"], one["types"]) for one in found["matches"]]
        turns.append(
            (f"call_tool('search_entities', {topic.lower()!r}, limit=2)", json.dumps(names, ensure_ascii=False))
        )
        queried = (await client.call_tool("query", {"form": reply["form"]})).structured_content or {}
        names = [one["name"] for one in queried["answers"]]
        turns.append(("call_tool('query', that form)", json.dumps(names, ensure_ascii=False)))
        schema = (await client.call_tool("schema", {"limit": 2})).structured_content or {}
        turns.append(("call_tool('schema', limit=2)", json.dumps(schema["types"] + schema["relations"])))
        card, *_ = (await client.list_resources()).resources
        [template] = (await client.list_resource_templates()).resource_templates
        turns.append(("client.list_resources(), and templates", f"{card.uri}, {template.uri_template}"))
        entity = f"kgqa://entity/{quote(reply['topics'][0]['key'], safe='')}"
        [content] = (await client.read_resource(entity)).contents
        turns.append((f"read_resource({entity!r})", json.dumps(json.loads(content.text), ensure_ascii=False)))
        [prompt] = (await client.list_prompts()).prompts
        [message] = (await client.get_prompt(prompt.name, {"question": question})).messages
        turns.append((f"get_prompt({prompt.name!r}, {question!r})", message.content.text))
    return turns


def http_turn(url: str, question: str) -> Turn:
    """`/ask` itself."""
    body = json.dumps({"question": question}).encode()
    request = urllib.request.Request(f"{url}/ask", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as reply:
        found = json.loads(reply.read())
    names = ("answer", "answers", "proof", "confidence", "min_confidence", "road", "topics", "stages")
    return f"POST /ask {question!r}", json.dumps({name: found.get(name) for name in names}, ensure_ascii=False)


def transcript(found: dict[str, Any]) -> str:
    """The page in Markdown."""
    made = found["conditions"]
    lines = [
        "# What clients get from `kgqa serve` and `kgqa mcp`", "",
        f"A run of a home over `{found['graph']}`. Commit {made['commit']}, {made['date']}, {made['cores']} "
        f"cores, threads of a process: {made['threads']}; by `benchmarks/serving/serve_clients.py`. Long texts are "
        "cut (`…`).",
        "",
        f"`kgqa ask` as a whole process, median of {found['ask']['rounds']}: {found['ask']['with_server']:.2f} s with "
        f"the server, {found['ask']['without']:.1f} s without.",
    ]  # fmt: skip
    for name, turns in found["transcripts"].items():
        lines += ["", f"## {name}", "", "```text"]
        for done, got in turns:
            lines += [f">>> {done}", *(got if len(got) <= SHOWN else f"{got[:SHOWN]}…").splitlines()]
        lines.append("```")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Serves, asks, and writes both files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--run", metavar="ID")
    parser.add_argument("--question", default="hey, what's the capital city over in New Zealand?")
    parser.add_argument("--follow", default="and how many people live there?")
    parser.add_argument("--unknown", default="Who is the president of France?")
    parser.add_argument("--json", type=Path, default=RESULTS / "serve_clients.json")
    parser.add_argument("--out", type=Path, default=RESULTS / "serve_clients.md")
    given = parser.parse_args()
    home = given.home.resolve()
    run = given.run or next(iter(current_champions(home).values()))
    own, seconds = [], []
    for _ in range(ROUNDS):
        own.append(kgqa("ask", given.question, "--run", run, "--own-process", home=home)[1])
    with served(home, "--run", run) as running:
        url = running.url
        for _ in range(ROUNDS):
            text, once = kgqa("ask", given.question, "--run", run, home=home)
            seconds.append(once)
        transcripts = {
            "The OpenAI client": openai_turns(url, given.question, given.follow, given.unknown),
            "The MCP client over HTTP, of the same server": asyncio.run(mcp_turns(f"{url}/mcp", given.question)),
            "HTTP": [http_turn(url, given.question)],
            "The command line, through the server": [(f"kgqa ask {given.question!r}", text)],
        }
        graph = json.loads(urllib.request.urlopen(f"{url}/v1/models", timeout=30).read())["data"][0]["id"].partition(
            "/"
        )[2]
    words = ["-m", "flows.cli", "mcp", "--home", str(home), "--run", run]
    started = StdioServerParameters(command=sys.executable, args=words, env={**os.environ, "PYTHONPATH": str(ROOT)})
    transcripts["The MCP client over stdio, of `kgqa mcp`"] = asyncio.run(mcp_turns(started, given.question))
    found = {
        "conditions": conditions(SEED), "graph": graph, "transcripts": transcripts,
        "ask": {
            "with_server": round(statistics.median(seconds), 3), "without": round(statistics.median(own), 2),
            "rounds": ROUNDS,
        },
    }  # fmt: skip
    results_file.write(given.json, found, FIELDS)
    given.out.write_text(transcript(json.loads(given.json.read_text(encoding="utf-8"))), encoding="utf-8")


if __name__ == "__main__":
    main()
