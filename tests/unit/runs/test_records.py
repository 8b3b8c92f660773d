"""Comparing runs says what changed, by how much with which certainty, and on which questions."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from kgqa_core.errors import ArtifactError, InputError
from kgqa_core.report.runs import render, run_tables
from kgqa_core.runs.answers import answer_table
from kgqa_core.runs.diff import compare_runs
from kgqa_core.runs.records import answering_run, choose_run, default_run, newest_run
from kgqa_core.serving.systems import SystemSource
from kgqa_core.store.artifacts import Home, write_json
from tests.support.finished import finished_run, questions

EXPERIMENT = "rigel/triples/builtin"
HOSTILE = "<script>alert('x')</script>"
ASKED = questions([f"What is {HOSTILE} {n}?" for n in range(40)], gold="<b>gold</b>")


def rows(values: list[float], experiment: str = EXPERIMENT) -> dict[str, dict[str, dict[str, float]]]:
    scored = {one.id: {"exact": value, "f1": value / 2} for one, value in zip(ASKED, values, strict=True)}
    return {experiment: scored}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Two runs: the second wins the first 20 questions and loses the last 5."""
    home = Home(tmp_path / "runs-home")
    first, second = [0.0] * 20 + [1.0] * 20, [1.0] * 35 + [0.0] * 5
    said = {EXPERIMENT: {one.id: f"{HOSTILE} said {one.id}" for one in ASKED}}
    made = {"code": "c1", "options": {"options": {"epochs": 4}}, "inputs": {"kg": "k1"}, "packages": {"numpy": "1"}}
    finished_run(home, "20260101-000000-aaaa", rows(first), ASKED, said, {"rigel": {"epochs": 4}}, {"scores": made})
    other = {"code": "c2", "options": {"options": {"epochs": 2}}, "inputs": {"kg": "k2"}, "packages": {"numpy": "2"}}
    said = {EXPERIMENT: {one.id: f"now {one.id}" for one in ASKED}}
    options = {"rigel": {"epochs": 2}, "kg": {"name": HOSTILE}}
    finished_run(home, "20260102-000000-abbb", rows(second), ASKED, said, options, {"scores": other})
    return home


def compared(home: Home) -> dict:
    return compare_runs([choose_run(home.root, "20260101"), choose_run(home.root, "newest")])


def test_changes_are_told_by_option_data_and_code(home: Home) -> None:
    found = compared(home)
    assert {row["key"]: row["values"] for row in found["configuration"]}["rigel.epochs"] == [4, 2]
    assert found["data"] == [
        {"what": "questions", "digests": [found["data"][0]["digests"][0]] * 2, "same": True, "counts": []}
    ]
    scores = next(row for row in found["code"]["stages"] if row["stage"] == "scores")
    assert scores["why"] == [[], ["other code (c1 → c2)", "epochs: 4 → 2", "package numpy: 1 → 2", "other input kg"]]
    assert found["code"]["commits"] == ["commit-20260101-000000-aaaa", "commit-20260102-000000-abbb"]


def test_scores_differ_by_an_interval_and_mcnemar(home: Home) -> None:
    by_metric = {row["metric"]: row["others"][0] for row in compared(home)["scores"]}
    exact, f1 = by_metric["exact"], by_metric["f1"]
    assert (exact["before"], exact["after"], exact["value"]) == (0.5, 0.875, 0.375)
    assert (exact["won"], exact["lost"], exact["n"]) == (20, 5, 40)
    assert 0 < exact["low"] < 0.375 < exact["high"] and exact["p"] == pytest.approx(0.00408, abs=1e-5)
    assert f1["value"] == 0.1875 and f1["p"] is None


def test_questions_won_and_lost_come_with_both_answers_and_gold(home: Home) -> None:
    (found,) = compared(home)["questions"]
    assert [row["id"] for row in found["won"]] == [one.id for one in ASKED[:20]]
    assert [row["id"] for row in found["lost"]] == [one.id for one in ASKED[35:]]
    assert found["lost"][0]["answer_before"] == f"{HOSTILE} said q0035"
    assert found["lost"][0]["answer_after"] == "now q0035" and found["lost"][0]["gold"] == ["<b>gold</b> 35"]


def test_page_escapes_names_answers_and_gold(home: Home) -> None:
    page = render(compared(home), "today")
    assert "<script" not in page and "<b>gold" not in page
    assert page.count("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;") >= 50
    assert "default-src 'none'" in page and "+37.5" in page


def test_terminal_shows_a_few_questions_and_the_page_all(home: Home) -> None:
    from rich.console import Console

    console = Console(width=200, record=True, file=None, force_terminal=False)
    with console.capture() as capture:
        for part in run_tables(compared(home), 3):
            console.print(part)
    text = capture.get()
    assert text.count(" said q00") == 6 and "3 of 20" in text and "3 of 5" in text
    assert render(compared(home)).count("said q00") == 25


def test_values_are_json(home: Home) -> None:
    assert json.loads(json.dumps(compared(home)))["runs"][1]["run_id"] == "20260102-000000-abbb"


def test_run_without_artifacts_is_compared_by_its_record_alone(home: Home) -> None:
    shutil.rmtree(next((home.root / "artifacts" / "scores").glob("scores20260101*")))
    found = compared(home)
    assert found["scores"] == [] and found["questions"] == []
    assert "20260101-000000-aaaa" in found["notes"][0]
    assert {row["key"] for row in found["configuration"]} == {"rigel.epochs", "kg.name"}
    assert "20260101-000000-aaaa" in render(found)


def test_other_answerer_is_compared_where_each_run_has_one(home: Home) -> None:
    finished_run(home, "20260103-000000-cccc", rows([1.0] * 40, "rigel/triples/openai:other/model"), ASKED)
    found = compare_runs([choose_run(home.root, "20260101-000000-aaaa"), choose_run(home.root, "newest")])
    assert found["scores"][0]["others"][0]["experiment"] == "rigel/triples/openai:other/model"


def test_unknown_experiment_names_the_nearest(home: Home) -> None:
    pair = [choose_run(home.root, "20260101"), choose_run(home.root, "20260102")]
    with pytest.raises(InputError, match="did you mean 'rigel/triples/builtin'"):
        compare_runs(pair, experiment="rigel/triple/builtin")


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("2026", "beginning of 2 runs: 20260101-000000-aaaa, 20260102-000000-abbb"),
        ("20260101-000000-aaab", "did you mean '20260101-000000-aaaa'"),
        ("champion", "no champion yet"),
        ("", "no run ''"),
    ],
)
def test_wrong_words_for_runs_are_explained(home: Home, word: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        choose_run(home.root, word)


def test_champion_is_a_word_for_a_run(home: Home) -> None:
    folder = home.root / "champions"
    folder.mkdir()
    (folder / "kgqa-a.json").write_text('{"champion": {"run_id": "20260102-000000-abbb"}}')
    assert choose_run(home.root, "champion")["run_id"] == "20260102-000000-abbb"
    (folder / "kgqa-b.json").write_text('{"champion": {"run_id": "20260101-000000-aaaa"}}')
    with pytest.raises(InputError, match=r"champion:kgqa-a, champion:kgqa-b"):
        choose_run(home.root, "champion")
    assert choose_run(home.root, "champion:kgqa-b")["run_id"] == "20260101-000000-aaaa"


def test_the_champion_answers_where_there_is_one_and_else_the_newest_run(home: Home) -> None:
    first, second = "20260101-000000-aaaa", "20260102-000000-abbb"
    assert default_run(home) == "newest" and answering_run(home)["run_id"] == second
    (home.root / "champions").mkdir()
    write_json(home.root / "champions" / "kgqa-a.json", {"champion": {"run_id": first}})
    assert answering_run(home)["run_id"] == first == SystemSource(home).fixed().current()
    assert answering_run(home, "newest")["run_id"] == second == newest_run(home)["run_id"]
    assert newest_run(home, "champion")["run_id"] == first == newest_run(home, "20260101")["run_id"]
    # of several graphs that of the newest run answers; a server goes on with the one it began with
    server = SystemSource(home).fixed()
    write_json(home.root / "champions" / "kgqa-b.json", {"champion": {"run_id": second}})
    record = json.loads((home.root / "runs" / second / "run.json").read_text())
    write_json(home.root / "runs" / second / "run.json", {**record, "champion": {"name": "kgqa-b"}})
    assert default_run(home) == "champion:kgqa-b" and server.current() == first
    assert answering_run(home, "champion")["run_id"] == second == SystemSource(home, "champion").fixed().current()
    with pytest.raises(InputError, match="beginning of 2 runs"):
        newest_run(home, "2026")


def test_a_damaged_record_of_a_champion_is_said_and_nothing_answers_in_its_place(home: Home) -> None:
    (home.root / "champions").mkdir()
    for text in ("{half", "[]", '{"champion": 7}'):
        (home.root / "champions" / "kgqa-a.json").write_text(text)
        for word in (None, "champion"):
            with pytest.raises(ArtifactError, match=r"kgqa-a.json cannot be read .*--run newest"):
                SystemSource(home, word).current()
    assert answering_run(home, "newest")["run_id"] == "20260102-000000-abbb"
    (home.root / "champions" / "kgqa-a.json").write_text('{"champion": {"run_id": "20260109-000000-gone"}}')
    with pytest.raises(InputError, match="the champion is run 20260109-000000-gone, whose record is gone"):
        SystemSource(home).current()


def test_answer_table_has_gold_answer_and_scores_of_every_experiment(home: Home) -> None:
    record = choose_run(home.root, "newest")
    folders = {stage["name"]: Path(stage["artifact"]["path"]) for stage in record["stages"]}
    table = answer_table(folders["scores"], folders["questions"], [folders["answers/rigel"]])
    assert table.columns == ["experiment", "split", "question", "text", "gold", "answer", "exact", "f1"]
    first = table.row(0, named=True)
    assert (first["question"], first["gold"], first["answer"]) == ("q0000", "<b>gold</b> 0", "now q0000")
    assert table.height == 40


@pytest.fixture
def table(home: Home) -> Home:
    """The home with a run of two question sets, whose second run is the newest of all, and which lost a third set."""
    for run_id, name in (("20260103-000001-aaaa", "people"), ("20260103-000002-bbbb", "towns")):
        record = finished_run(home, run_id, rows([1.0] * 40), ASKED, settings={"questions": {"name": name}})
        write_json(home.root / "runs" / run_id / "run.json", {**record, "table": "20260103-000000-0000"})
    whole = {
        "run_id": "20260103-000000-0000", "status": "done", "stages": [], "profile": record["profile"],
        "sets": {"people": "20260103-000001-aaaa", "towns": "20260103-000002-bbbb"},
        "failed_sets": {"lakes": "it burnt"},
    }  # fmt: skip
    (home.root / "runs" / whole["run_id"]).mkdir()
    write_json(home.root / "runs" / whole["run_id"] / "run.json", whole)
    return home


def test_a_run_of_several_sets_stands_for_its_first_set_and_gives_each_by_name(table: Home) -> None:
    assert newest_run(table)["run_id"] == "20260103-000001-aaaa"
    assert newest_run(table, whole=True)["run_id"] == "20260103-000000-0000"
    assert newest_run(table, "newest:towns")["run_id"] == "20260103-000002-bbbb"
    assert newest_run(table, "20260103-000000-0000:towns")["run_id"] == "20260103-000002-bbbb"
    assert newest_run(table, "20260103-000002-bbbb")["run_id"] == "20260103-000002-bbbb"
    assert choose_run(table.root, "newest:people")["run_id"] == "20260103-000001-aaaa"
    for word, text in (
        ("newest:town", "has no question set 'town'; it has people, towns; did you mean 'towns'?"),
        ("newest:lakes", "question set 'lakes' of run 20260103-000000-0000 failed: it burnt"),
        ("20260102-000000-abbb:towns", "has no question set 'towns'; it has asked"),
        ("", "no finished run ''"),
    ):
        with pytest.raises(InputError) as caught:
            newest_run(table, word)
        assert text in str(caught.value)
    with pytest.raises(InputError, match="say which: newest:people, newest:towns"):
        choose_run(table.root, "newest")


def test_the_sets_of_a_killed_table_stand_for_themselves(table: Home) -> None:
    path = table.root / "runs" / "20260103-000000-0000" / "run.json"
    write_json(path, {**json.loads(path.read_text(encoding="utf-8")), "status": "killed"})
    assert newest_run(table)["run_id"] == "20260103-000002-bbbb"
    assert choose_run(table.root, "newest")["run_id"] == "20260103-000002-bbbb"
