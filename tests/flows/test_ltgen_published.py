"""Tables 3 and 4 of Huang et al. 2024 by the profile `ltgen-published`: from a small graph to one report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flows.ltgen import with_titles
from kgqa_core.config import PopularityOptions
from tests.support.chat_server import ChatServer
from tests.support.forked_command import forked_kgqa as kgqa
from tests.support.ltgen import make_graph, reply

MODEL = "openai:stub"


def answer(prompt: str, drawn: object = None) -> str:
    """Benchmarks in the paper's format, the first relations of a list, and else what the knowledge says."""
    if "Triples:\n" in prompt or "Relation Pairs:\n" in prompt:
        return reply(prompt, drawn)
    if "<<<relations>>>" in prompt or "Relations: " in prompt:
        return "\n".join(prompt.rpartition("Relations: ")[2].strip("<>").split(", ")[:5])
    return prompt


@pytest.mark.slow
def test_a_graph_becomes_the_benchmark_and_the_benchmark_table_4(tmp_path: Path) -> None:
    make_graph(tmp_path / "graph")
    corpus = tmp_path / "kilt_w100_title.tsv"
    corpus.write_text("id\ttext\ttitle\n1\tOslo is a city.\tOslo\n2\tAda wrote.\tAda Byron\n", encoding="utf-8")
    home, out = tmp_path / "home", tmp_path / "ltgen"
    with ChatServer(answer) as server:
        shared = ["--profile", "ltgen-published", "--kg", tmp_path / "graph/graph.nt", "--home", home, "--json"]
        settings = [
            f"llm.base_url={server.base_url}", "llm.retries=0", "ltgen.popularity.source=degree",
            "ltgen.sampling.per_level=3", "ltgen.sampling.thresholds=[1,9,12,15,100]",
        ]  # fmt: skip
        shared += [word for setting in settings for word in ("--set", setting)]
        key = {"OPENAI_API_KEY": "none", "OMP_NUM_THREADS": "1"}
        made = kgqa("ltgen", "build", *shared, "--writer", MODEL, "--out", out, env=key)
        assert made.code == 0, made.err[-3000:]
        more = [
            *(f"questions.ltgen-{kind}.path={out}/{kind}/questions.jsonl" for kind in ("qa", "conv")),
            f"passages.corpus={corpus}", f"relation_ranking.model={MODEL}", f"answering.answerers=[{MODEL}]",
            "evaluation.nli=null", "evaluation.bootstrap=100",
        ]  # fmt: skip
        words = [*shared, *(word for setting in more for word in ("--set", setting))]
        before = server.stats()["requests"]
        planned = kgqa("forecast", *words, env=key)
        assert planned.code == 0, planned.err[-3000:]
        assert server.stats()["requests"] == before
        done = kgqa("run", *words, env=key)
        assert done.code == 0, done.err[-3000:]
    calls = sum(plan["calls"] for plan in planned.json["stages"] if plan["model"] == MODEL)
    assert calls > 0 and done.json["failed_sets"] == {} and sorted(done.json["sets"]) == ["ltgen-conv", "ltgen-qa"]
    for name in ("ltgen-qa", "ltgen-conv"):
        one = done.json["tables"]["sets"][name]
        settings = {experiment.rpartition("/")[0] for experiment in one["scores"] if experiment.endswith(MODEL)}
        assert settings == {
            "none/none", "passages/passages", "rank_llm/triples", "rank_llm/both", "rank_llm@linked/triples",
            "rank_llm@linked/both",
        }  # fmt: skip
        gold = one["scores"][f"rank_llm/triples/{MODEL}"]["test"]
        assert gold["km"]["value"] > one["scores"][f"none/none/{MODEL}"]["test"]["km"]["value"]
        assert {"I", "II"} & one["by_level"][f"rank_llm/triples/{MODEL}"].keys() and one["recall_by_k"]
    page = Path(done.json["report"]).read_text(encoding="utf-8")
    for text in ("Table 4 · ltgen-qa · Settings", "Table 4 · ltgen-conv · Settings", "eKM", "Triples and passages"):
        assert text in page, text
    questions = (out / "qa/questions.jsonl").read_text(encoding="utf-8").splitlines()
    assert all(json.loads(line)["level"] for line in questions)


def test_page_views_take_titles_from_the_graphs_own_dump(tmp_path: Path) -> None:
    dump = tmp_path / "wikidata.json"
    dump.write_text('[\n{"type":"item","id":"Q1","labels":{},"claims":{}}\n]\n', encoding="utf-8")
    views = PopularityOptions(source="api")
    assert with_titles(views, ["bundled:atlas", str(dump)]).titles == str(dump)
    assert with_titles(views, ["bundled:atlas"]).titles is None
    own = PopularityOptions(source="api", titles="mine.tsv")
    assert with_titles(own, [str(dump)]) == own
    degree = PopularityOptions(source="degree")
    assert with_titles(degree, [str(dump)]) == degree
