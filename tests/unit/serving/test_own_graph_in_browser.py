"""The page over a graph that is served without a run, in Chromium: what it begins with, names, the console, tables."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from kgqa_core.runs.graph_files import graph_record
from kgqa_core.serving.feedback import FeedbackStore
from kgqa_core.serving.http import HttpOptions, create_app
from kgqa_core.serving.run import ServeOptions
from kgqa_core.serving.service import Service
from kgqa_core.serving.systems import SystemSource
from kgqa_core.store.artifacts import Home
from tests.support.browser import NO_CHROMIUM, Browser, chromium
from tests.support.served import listening

pytestmark = pytest.mark.slow
WIDE, PHONE = (1040, 900), (360, 740)
PEOPLE = ("Ada Stone", "Bo Lind", "Cy Moss", "Di Oz")
GRAPH = """@prefix : <urn:x:> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:Team rdfs:label "team" . :Person rdfs:label "person" . :City rdfs:label "city" .
:led_by rdfs:label "led by" . :located_in rdfs:label "located in" .
:oslo a :City ; rdfs:label "Oslo" . :bergen a :City ; rdfs:label "Bergen" .
""" + "\n".join(
    f':t{n} a :Team ; rdfs:label "{colour} Team" ; :led_by :p{n} ; :located_in :{("oslo", "bergen")[n % 2]} ; '
    f':members {5 + n} . :p{n} a :Person ; rdfs:label "{PEOPLE[n]}" .'
    for n, colour in enumerate(("Blue", "Red", "Green", "Grey"))
)  # fmt: skip
QUESTION = "Who is the gaffer of Blue Team?"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("own")
    (folder / "teams.ttl").write_text(GRAPH, encoding="utf-8")
    home = Home(folder / "home")
    service = Service(SystemSource(home, record=graph_record(home, [folder / "teams.ttl"])))
    with listening(create_app(service, HttpOptions(naming=True), FeedbackStore(home.root / "serve"))) as url:
        yield url


@pytest.fixture(scope="module")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if chromium() is None:
        pytest.skip(NO_CHROMIUM)
    with Browser(tmp_path_factory.mktemp("log") / "chromium.log", size=WIDE) as running:
        yield running


@pytest.fixture
def page(chrome: Browser, address: str) -> Browser:
    """The page as a new visitor sees it."""
    chrome.emulate(*WIDE)
    chrome.open(f"{address}/health", "alive")
    chrome.run("sessionStorage.clear(); localStorage.clear()")
    chrome.open(address, "in your own words")
    return chrome


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pictures are kept."""
    given = os.environ.get("KGQA_TEST_OUTPUT")
    folder = Path(given).resolve() / "own" if given else tmp_path_factory.mktemp("pictures")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def ask(page: Browser, question: str, *words: str) -> str:
    page.fill("#question", question)
    page.press("Enter")
    asked = f"document.querySelector('.turn h2')?.innerText.trim() === {json.dumps(question)}"
    wait_for(page, f"!document.querySelector('.waiting') && {asked}")
    return page.wait(*words)


def wait_for(page: Browser, script: str) -> None:
    until = time.monotonic() + 60
    while not page.run(script):
        assert time.monotonic() < until, f"{script}: {page.text()[:1500]}"
        time.sleep(0.1)


def texts(page: Browser, selector: str) -> list[str]:
    found = f"JSON.stringify([...document.querySelectorAll('{selector}')].map(one => one.innerText.trim()))"
    return [str(text) for text in json.loads(page.run(found))]


def test_the_page_begins_with_what_is_in_the_graph_and_with_questions_that_it_answers(
    page: Browser, output: Path
) -> None:
    text = page.wait("What is in it", "It answers, for example", "Names that were given here")
    assert "10 facts" not in text and "3 types" in text and "team 4" in text and "led by 4" in text
    questions = texts(page, ".examples button")
    assert 3 <= len(questions) <= 6 and len(set(questions)) == len(questions)
    page.picture(output / "start.png", still=0.5)
    for question in questions:
        page.click(question)
        page.wait(question, "Proof" if not question.startswith("How many") else "confidence")
        assert not texts(page, ".not-here"), question
        page.click("New conversation")
        page.wait("What is in it", "It answers, for example")
    page.emulate(*PHONE)
    assert page.run("document.documentElement.scrollWidth") == PHONE[0]


def test_a_question_is_in_the_address_and_the_way_back_fills_it_in(page: Browser) -> None:
    ask(page, "How many teams are there?", "4")
    assert page.run("location.search") == "?q=How+many+teams+are+there%3F"
    ask(page, "Who leads Blue Team?", "Blue Team", "confidence")
    page.run("history.back()")
    wait_for(page, "document.querySelector('#question').value === 'How many teams are there?'")


def test_a_word_that_is_not_understood_is_named_read_at_once_and_undone(page: Browser, output: Path) -> None:
    ask(page, QUESTION, "gaffer")
    assert not texts(page, ".answers")
    page.click("New conversation")
    page.wait("Names that were given here")
    page.run("document.querySelector('main > .turns > details:last-child').open = true")
    page.wait("None yet.", "Give this name")
    page.fill(".name-form input", "gaffer")
    page.fill(".name-form input[list]", "led by")
    page.picture(output / "naming.png", still=0.5)
    page.press("Enter")
    page.wait("“gaffer” now means “led by”", "names/teams.yaml", "Undo")
    assert "“gaffer” means a relation, “led by” Take out" in " ".join(page.text().split())
    ask(page, QUESTION, "Ada Stone", "Proof")
    page.click("New conversation")
    page.wait("Names that were given here")
    page.run("document.querySelector('main > .turns > details:last-child').open = true")
    page.wait("means a relation")
    page.click("Take out")
    page.wait("None yet.")
    ask(page, QUESTION, "gaffer")
    assert not texts(page, ".answers")


def test_the_form_of_a_declined_question_asks_again_and_what_is_no_relation_names_the_nearest(
    page: Browser, address: str
) -> None:
    ask(page, "Which former teams are located in Oslo?", "I did not understand “former”")
    page.run("[...document.querySelectorAll('details')].find(one => one.innerText.startsWith('Say what')).open = true")
    page.fill(".name-form input[list]", "locatd in")
    page.press("Enter")
    page.wait("is not in the graph; did you mean")
    page.run("document.querySelector('.name-form input[list]').select()")
    kind = "document.querySelector('.name-form select')"
    page.run(f"{kind}.value = 'types'; {kind}.dispatchEvent(new Event('change'))")
    page.run("(one => { one.value = 'former teams'; })(document.querySelector('.name-form input'))")
    page.fill(".name-form input[list]", "team")
    page.press("Enter")
    page.wait("“former teams” now means “team”", "Blue Team", "Green Team", "Undo")
    page.click("Undo")
    page.wait("I did not understand “former”")


def test_a_thing_gets_another_name_on_its_page(page: Browser, address: str) -> None:
    page.open(f"{address}/entity?key={quote('urn:x:t0')}", "Blue Team", "Give it another name")
    page.run("[...document.querySelectorAll('details')].find(one => one.innerText.startsWith('Give it')).open = true")
    page.fill(".name-form input", "The Azures")
    page.press("Enter")
    page.wait("“The Azures” now means “Blue Team”")
    page.open(f"{address}/entity?key=The+Azures", "Blue Team", "Also called", "The Azures")
    page.open(address, "Names that were given here")
    page.run("document.querySelector('main > .turns > details:last-child').open = true")
    page.wait("“The Azures” means a thing")
    page.click("Take out")
    page.wait("None yet.")


def test_the_console_runs_three_languages_and_its_errors_name_the_way_out(
    page: Browser, address: str, output: Path
) -> None:
    page.open(f"{address}/console?form={quote('(JOIN (R <led by>) <Blue Team>)')}", "Console", "Run")
    assert "Ada Stone" not in page.text(), "a link runs nothing"
    page.click("Run")
    page.wait("Ada Stone", "urn:x:p0", "Proof: 1 triple", "(JOIN (R urn:x:led_by) urn:x:t0)")
    assert page.run("document.querySelector('thead').innerText").split() == ["answer", "key"]
    for language, statement, words in (
        ("sparql", "SELECT (COUNT(?x) AS ?n) WHERE { ?x a <urn:x:Team> }", ("4", "(COUNT (TYPE urn:x:Team))")),
        (
            "sparql",
            "SELECT * WHERE { ?s ?p ?o }",
            ("a variable relation, which logical forms", "or use SQL"),
        ),
        ("sql", "SELECT count(*) AS n FROM triples", ("1 row", "n")),
        ("sql", "SELECT i, i * i AS square FROM range(50) t(i)", ("50 rows", "30 more rows", "square", "361")),
        ("sql", "SELECT * FROM facts", ("Tables are entities",)),
        ("sql", "DROP TABLE triples", ("only this graph can be read",)),
        ("form", "(JOIN (R <led bye>) <Blue Team>)", ("did you mean 'led by'",)),
    ):
        page.open(f"{address}/console?{language}={quote(statement)}", "Console", "Run")
        page.run("document.querySelector('#statement').focus()")
        page.click("Run")
        page.wait(*words)
    page.open(f"{address}/console", "Console", "Run")
    wait_for(page, "!document.querySelector('#statement').placeholder.includes('country')")
    page.click("Run")
    assert "error" not in page.wait("(COUNT (TYPE"), "an empty field runs the example, which is one of this graph"
    page.open(f"{address}/console?sql={quote('SELECT key, kind FROM entities')}", "Run")
    page.click("Run")
    page.wait("rows", "kind")
    page.picture(output / "console.png", still=0.5)
    page.emulate(*PHONE)
    assert page.run("document.documentElement.scrollWidth") == PHONE[0]
    page.picture(output / "console-phone.png", still=0.5)
    page.open(address, "in your own words")
    page.emulate(*WIDE)
    ask(page, "Who is Blue Team led by?", "Ada Stone", "Proof")
    page.click("How it was found")
    page.wait("Open in the console")
    page.click("Open in the console")
    page.wait("Console", "Run")
    assert page.run("document.querySelector('#statement').value") == "(JOIN (R urn:x:led_by) urn:x:t0)"


def test_answers_with_values_are_a_table_and_are_taken_along(page: Browser, output: Path) -> None:
    ask(page, "Which two teams have the most members?", "Proof")
    wait_for(page, "document.querySelector('.answer table') !== null")
    assert texts(page, ".answer tbody tr") == ["Grey Team\t8", "Green Team\t7"]
    assert texts(page, ".answer thead th") == ["answer", "members"]
    page.picture(output / "table.png", still=0.5)
    page.run("navigator.clipboard.writeText = text => { window.taken = text; return Promise.resolve(); }")
    page.click("Copy")
    page.wait("Copied")
    assert page.run("window.taken") == "Grey Team\t8\nGreen Team\t7"
    page.run("URL.createObjectURL = blob => { window.saved = blob; return 'blob:none'; }")
    page.click("CSV")
    page.wait("Saved as CSV")
    assert page.run("window.saved.text()") == "answer,members\r\nGrey Team,8\r\nGreen Team,7\r\n"
    page.click("JSON")
    page.wait("Saved as JSON")
    saved = json.loads(page.run("window.saved.text()"))
    assert sorted(saved["answers"]) == ["Green Team", "Grey Team"] and saved["form"] and saved["proof"]
    odd = json.dumps([["=1+1", 'a "b", c', "-3", "-x", "two\nlines", 7]])
    assert page.run(f"import('/assets/table.js').then(one => one.csv(['x'], {odd}))") == (
        'x\r\n\'=1+1,"a ""b"", c",-3,\'-x,"two\nlines",7\r\n'
    )


def test_a_picture_is_filtered_by_type(page: Browser) -> None:
    ask(page, "Who is Blue Team led by?", "Ada Stone", "Proof")
    wait_for(page, "document.querySelectorAll('.kinds button').length === 2")
    assert sorted(texts(page, ".kinds button")) == ["person 1", "team 1"]
    seen = (
        "[...document.querySelectorAll('.node, .edge')].filter(one => getComputedStyle(one).display !== 'none').length"
    )
    assert page.run(seen) == 3
    page.click("person 1")
    assert page.run(seen) == 1
    assert page.run("document.querySelectorAll('.kinds [aria-pressed=false]').length") == 1
    page.run("document.querySelector('.drawing').focus()")
    for key in ("ArrowRight", "ArrowLeft", "ArrowDown"):
        page.press(key)
    assert page.run("document.querySelectorAll('.node.chosen.away').length") == 0
    page.click("person 1")
    assert page.run(seen) == 3


def test_the_history_of_this_browser_is_cleared_and_nothing_is_kept_where_that_is_forbidden(page: Browser) -> None:
    ask(page, "How many teams are there?", "4")
    ask(page, "How many cities are there?", "2")
    assert json.loads(page.run("localStorage.getItem('kgqa-history')")) == [
        "How many cities are there?",
        "How many teams are there?",
    ]
    page.run("sessionStorage.clear(); location.assign('/')")
    time.sleep(0.5)
    page.wait("Asked in this browser: 2 questions", "in your own words")
    page.click("Asked in this browser: 2 questions")
    page.click("How many teams are there?")
    page.wait("needs 40 %")
    page.click("Clear history")
    wait_for(page, "document.querySelector('.fold').hidden")
    assert page.run("localStorage.getItem('kgqa-history')") is None
    page.run("Storage.prototype.setItem = () => { throw new DOMException('no', 'QuotaExceededError'); }")
    ask(page, "How many cities are there?", "2", "Earlier in this conversation")
    assert page.run("localStorage.length") == 0


def test_a_file_that_is_chosen_on_the_page_is_asked_and_a_bad_one_is_refused(
    chrome: Browser, output: Path, tmp_path: Path
) -> None:
    (tmp_path / "teams.ttl").write_text(GRAPH, encoding="utf-8")
    (tmp_path / "my people.csv").write_text("name,boss,team\nAna,Dee,Red\nBo,Ana,Red\nCy,Ana,Blue\n")
    (tmp_path / "broken.nt").write_text("<urn:a> <urn:b> .\n" * 3)
    home = Home(tmp_path / "home")
    options = ServeOptions(str(home.root), record=graph_record(home, [tmp_path / "teams.ttl"]), upload_mb=1)
    with listening(options.app()) as url:
        chrome.emulate(*WIDE)
        chrome.open(url, "in your own words", "Ask a graph of your own")
        chrome.run("document.querySelector('main > .turns > details:last-child').open = true")
        chrome.choose("#graph-file", tmp_path / "broken.nt")
        assert chrome.run("document.querySelector('#graph-name').value") == "broken"
        chrome.click("Read this graph")
        assert str(tmp_path) not in chrome.wait("statements in all are rejected")
        chrome.run("document.querySelector('#graph-file').scrollIntoView()")
        chrome.picture(output / "upload-refused.png", still=0.5)
        chrome.choose("#graph-file", tmp_path / "my people.csv")
        assert chrome.run("document.querySelector('#graph-name').value") == "my-people"
        chrome.click("Read this graph")
        wait_for(chrome, "location.pathname === '/g/my-people/'")
        chrome.wait("in your own words", "What is in it")
        assert texts(chrome, "#graph select option") == ["teams", "my-people"]
        ask(chrome, "Who is the boss of Cy?", "Ana", "Proof")
        chrome.picture(output / "upload-asked.png", still=0.5)
        chrome.emulate(*PHONE)
        chrome.click("New conversation")
        chrome.wait("Ask a graph of your own")
        chrome.run("document.querySelector('main > .turns > details:last-child').open = true")
        chrome.run("document.querySelector('#graph-file').scrollIntoView({block: 'center'})")
        chrome.picture(output / "upload-phone.png", still=0.5)
        assert chrome.run("document.documentElement.scrollWidth") == PHONE[0]
