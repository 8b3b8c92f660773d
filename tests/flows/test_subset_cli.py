"""`kgqa kg subset` and `kgqa questions bridge` at the command line, and a run on what they write."""

from __future__ import annotations

import gzip
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from flows.cli import app as cli
from kgqa_core.errors import InputError
from tests.support.command import environment
from tests.support.forked_command import forked_kgqa
from tests.support.sparql_server import SparqlServer

WD, WDT = "http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/direct/"
COUNTRIES = 12
QUICK = ("retrieval.retrievers=[random, oracle]", "answering.knowledge=[none]", "evaluation.bootstrap=100")


def fact(subject: str, relation: str, thing: str) -> str:
    end = f"<{WD}{thing}>" if thing[:1] == "Q" else f'"{thing}"'
    return f"<{WD}{subject}> <{WDT}{relation}> {end} .\n"


def label(key: str, name: str) -> str:
    return f'<{WD}{key}> <http://www.w3.org/2000/01/rdf-schema#label> "{name}"@en .\n'


def write_dump(folder: Path) -> Path:
    """Countries Q1.. with capitals Q101.., each on a continent; and as many facts that no question is about."""
    lines = [label("P36", "capital"), label("P30", "continent"), label("Q999", "the continent")]
    for number in range(1, COUNTRIES + 1):
        country, capital = f"Q{number}", f"Q{100 + number}"
        lines += [
            label(country, f"country {number}"), label(capital, f"city {number}"), fact(country, "P36", capital),
            fact(country, "P30", "Q999"), fact(country, "P646", f"/m/0c{number}"),
            fact(capital, "P646", f"/m/0t{number}"),
            fact(f"Q{5000 + number}", "P36", f"Q{6000 + number}"),
        ]  # fmt: skip
    path = folder / "truthy.nt.gz"
    path.write_bytes(gzip.compress("".join(lines).encode()))
    return path


def write_questions(folder: Path) -> Path:
    rows = [
        {"id": f"q{n}", "question": f"what is the capital of country {n}?", "topic_entities": [f"Q{n}"],
         "answers": [f"Q{100 + n}"], "relation_path": ["P36"]}
        for n in range(1, COUNTRIES + 1)
    ]  # fmt: skip
    path = folder / "questions.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.slow
def test_a_run_reads_the_subset_of_a_dump(tmp_path: Path) -> None:
    dump, questions, out = write_dump(tmp_path), write_questions(tmp_path), tmp_path / "subset.nt.gz"
    made = forked_kgqa("kg", "subset", dump, "--questions", questions, "--hops", "1", "--out", out, "--json")
    assert made.code == 0, made.err[-2000:]
    assert made.json["kept"] == {
        "edges": 2 * COUNTRIES, "literals": 2 * COUNTRIES, "types": 0, "names": 2 * COUNTRIES + 1, "relation_names": 2
    }  # fmt: skip
    assert (made.json["questions"], made.json["topics"], made.json["answers"]) == (COUNTRIES,) * 3
    assert json.loads((tmp_path / "subset.nt.gz.counts.json").read_text())["not_found"] == []
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "questions.jsonl", "subset.nt.gz", "subset.nt.gz.counts.json", "truthy.nt.gz"
    ]  # fmt: skip
    settings = [word for one in (*QUICK, "questions.split_shares=[0, 0, 1]") for word in ("--set", one)]
    run = forked_kgqa("run", "--kg", out, "--questions", questions, "--home", tmp_path / "home", "--json", *settings)
    assert run.code == 0, run.err[-2000:]
    assert run.json["scores"]["oracle/-/-"]["test"]["hits_at_1"]["value"] == 1.0


def test_relations_may_stand_in_a_file_and_the_table_names_what_is_missing(tmp_path: Path) -> None:
    dump, questions = write_dump(tmp_path), write_questions(tmp_path)
    questions.write_text(questions.read_text().replace('"Q1"', '"Q77"'))
    (tmp_path / "relations.txt").write_text("# those of the questions\nP36 # capital\n\n")
    words = ["kg", "subset", str(dump), "--questions", str(questions), "--relations", f"@{tmp_path}/relations.txt"]
    made = CliRunner().invoke(cli.app, [*words, "--out", str(tmp_path / "out.nt")])
    assert made.exit_code == 0, made.output
    assert "kept: edges" in made.output and "such as Q77" in made.output
    assert WDT + "P30" not in (tmp_path / "out.nt").read_text()
    again = CliRunner().invoke(cli.app, [*words, "--out", str(tmp_path / "out.nt")])
    assert isinstance(again.exception, InputError) and "--force" in str(again.exception)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--relations", ","], "names nothing"),
        (["--relations", "@nowhere.txt"], "cannot be read"),
        (["--memory-limit", "plenty"], "plenty"),
    ],
)
def test_options_that_cannot_be_used_are_refused(tmp_path: Path, words: list[str], message: str) -> None:
    dump, questions = write_dump(tmp_path), write_questions(tmp_path)
    given = ["kg", "subset", str(dump), "--questions", str(questions), "--out", str(tmp_path / "out.nt"), *words]
    refused = CliRunner().invoke(cli.app, given)
    assert isinstance(refused.exception, InputError) and message in str(refused.exception)
    assert not (tmp_path / "out.nt").exists()


@pytest.mark.slow
def test_a_killed_command_goes_on_with_the_batches_that_an_endpoint_has_not_answered(tmp_path: Path) -> None:
    dump, questions = write_dump(tmp_path), write_questions(tmp_path)
    words = ["--questions", str(questions), "--hops", "1", "--json", "--delay", "0"]
    with SparqlServer(gzip.decompress(dump.read_bytes()).decode()) as server:
        command = [sys.executable, "-m", "flows.cli", "kg", "subset", server.address, "--out", str(tmp_path / "a.nt")]
        server.misbehave([""] * 9 + ["slow"] * 100)
        with subprocess.Popen([*command, *words, "--batch", "2"], env=environment(), stdout=subprocess.DEVNULL) as one:
            until = time.monotonic() + 120
            while len(server.queries) < 11 and time.monotonic() < until:
                time.sleep(0.05)
            one.send_signal(signal.SIGKILL)
        assert not (tmp_path / "a.nt").exists()
        before = set(server.queries[:8])
        server.faults.clear()
        server.queries.clear()
        again = forked_kgqa("kg", "subset", server.address, "--out", tmp_path / "a.nt", "--batch", "2", *words)
        assert again.code == 0, again.err[-2000:]
        assert before.isdisjoint(server.queries)
    file = forked_kgqa("kg", "subset", dump, "--out", tmp_path / "b.nt", *words)
    assert file.code == 0, file.err[-2000:]
    lines = [set((tmp_path / name).read_text().splitlines()) for name in ("a.nt", "b.nt")]
    assert lines[0] == lines[1]


@pytest.mark.slow
def test_freebase_questions_run_over_wikidata(tmp_path: Path) -> None:
    dump = write_dump(tmp_path)
    rows = [
        {"QuestionId": f"w{n}", "RawQuestion": f"capital of country {n}", "Parses": [{
            "TopicEntityMid": f"m.0c{n}", "InferentialChain": ["location.country.capital"],
            "Answers": [{"AnswerType": "Entity", "AnswerArgument": f"m.0t{n}", "EntityName": f"city {n}"}]}]}
        for n in range(1, COUNTRIES + 2)
    ]  # fmt: skip
    questions = tmp_path / "WebQSP.train.json"
    questions.write_text(json.dumps({"Questions": rows}), encoding="utf-8")
    made = forked_kgqa("kg", "subset", dump, "--questions", questions, "--out", tmp_path / "part.nt", "--json")
    assert made.code == 0, made.err[-2000:]
    assert (made.json["seeds_bridged"], made.json["seeds_not_found"]) == (2 * COUNTRIES, 2)
    built = forked_kgqa("kg", "build", tmp_path / "part.nt", "--out", tmp_path / "graph")
    assert built.code == 0, built.err[-2000:]
    bridged = forked_kgqa(
        "questions", "bridge", "--questions", f"test={questions}", "--kg", tmp_path / "graph", "--learn-relations",
        questions, "--out", tmp_path / "own.jsonl", "--json",
    )  # fmt: skip
    assert bridged.code == 0, bridged.err[-2000:]
    assert bridged.json["questions_surviving"] == COUNTRIES
    assert bridged.json["paths"] == {"all": 1, "surviving": 1}
    assert (tmp_path / "own.jsonl.paths.tsv").read_text() == "location.country.capital\tP36\n"
    (reject,) = map(json.loads, (tmp_path / "own.jsonl.rejects.jsonl").read_text().splitlines())
    assert (reject["id"], reject["reason"]) == (f"w{COUNTRIES + 1}", "no topic survives")
    settings = [word for one in QUICK for word in ("--set", one)]
    run = forked_kgqa(
        "run", "--kg", tmp_path / "part.nt", "--questions", tmp_path / "own.jsonl", "--home", tmp_path / "home",
        "--json", *settings,
    )  # fmt: skip
    assert run.code == 0, run.err[-2000:]
    assert run.json["scores"]["oracle/-/-"]["test"]["hits_at_1"] | {"low": 1, "high": 1} == (
        {"value": 1.0, "n": COUNTRIES, "low": 1, "high": 1}
    )
