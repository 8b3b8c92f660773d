"""Questions about when facts hold, who states them and what else is said of them, from files to answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from kgqa_core.config import KgOptions, LinkingOptions, SymbolicOptions
from kgqa_core.kg.build import build
from kgqa_core.kg.store import KgStore
from kgqa_core.linking import dictionary
from kgqa_core.linking.questions import link_question
from kgqa_core.linking.tagger import open_tagger
from kgqa_core.symbolic.auto import AutoSolver
from kgqa_core.symbolic.compute import Calculator
from kgqa_core.symbolic.tables import ComputedAnswer
from kgqa_core.types import Question
from kgqa_core.workspace import Workspace

Ask = Callable[[str], ComputedAnswer]

JOBS = """@prefix : <http://example.org/j/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:ana rdfs:label "Ana Brook" ; :worksFor :acme {| :since 2015 ; :role "analyst" |} .
:ben rdfs:label "Ben Ortiz" ; :worksFor :acme {| :since 2021 |} .
:ana :worksFor :zeta ~ :r1 {| :since 2009 ; :until 2014 |} .
:acme rdfs:label "Acme Tools" . :zeta rdfs:label "Zeta Labs" .
:worksFor rdfs:label "works for" . :since rdfs:label "since" . :role rdfs:label "role" .
"""
COUNCIL = """@prefix k: <http://example.org/k/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
k:g2019 { k:elm rdfs:label "Elmford" ; k:mayor k:ada . k:ada rdfs:label "Ada Holm" . }
k:g2024 { k:elm k:mayor k:bo . k:bo rdfs:label "Bo Lindqvist" . }
"""
_KINDS = (("name", "node", "string"), ("label", "edge", "string"), ("since", "edge", "int"), ("until", "edge", "int"))
_KEYS = "".join(f'<key id="{key}" for="{of}" attr.name="{key}" attr.type="{kind}"/>' for key, of, kind in _KINDS)
_PEOPLE = {"n1": "Ada Holm", "n2": "Bo Lindqvist", "n3": "Cleo Marr", "n4": "Elmford"}
_TERMS = (("n1", "2011", "2019"), ("n2", "2019", ""), ("n3", "2003", "2011"))
MAYORS = (
    f'<graphml xmlns="http://graphml.graphdrawing.org/xmlns">{_KEYS}<graph edgedefault="directed">'
    + "".join(f'<node id="{key}"><data key="name">{name}</data></node>' for key, name in _PEOPLE.items())
    + "".join(
        f'<edge source="{who}" target="n4"><data key="label">mayor of</data><data key="since">{begin}</data>'
        + (f'<data key="until">{end}</data>' if end else "")
        + "</edge>"
        for who, begin, end in _TERMS
    )
    + "</graph></graphml>"
)


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory):
    """What the packaged model answers over a file."""
    opened: list[KgStore] = []

    def over(name: str, text: str, **options: bool) -> tuple[Ask, AutoSolver]:
        folder = tmp_path_factory.mktemp("qualified")
        (folder / name).write_text(text, encoding="utf-8")
        for own in ("kg", "mentions"):
            (folder / own).mkdir()
        build(Workspace(folder / "kg"), options=KgOptions(files=(str(folder / name),), threads=1))
        dictionary.build(Workspace(folder / "mentions"), kg=folder / "kg")
        tagger = open_tagger(folder / "mentions", folder / "kg", LinkingOptions())
        opened.append(KgStore.open(folder / "kg"))
        solver = AutoSolver(opened[-1], SymbolicOptions(**options))
        solver.parser.qualifiers.today = date(2026, 1, 1)

        def ask(text: str) -> ComputedAnswer:
            question, _ = link_question(tagger, Question(id="q", text=text, split="test"), LinkingOptions())
            return solver.solve([question])[0]

        return ask, solver

    yield over
    for store in opened:
        store.close()


def test_annotations_of_facts_are_answers_and_conditions(asking) -> None:
    ask, solver = asking("jobs.ttl", JOBS)
    for question, answers in {
        "Since when does Ana Brook work for Acme Tools?": ("2015",),
        "what is Ana Brook's role at Acme Tools": ("analyst",),
        "who has worked for Acme Tools since 2021?": ("Ben Ortiz",),
        "who worked for Acme Tools in 2016?": ("Ana Brook",),
        "until when did Ana Brook work for Zeta Labs?": ("2014",),
        "where does Ana Brook work now?": ("Acme Tools",),
        "does Ana Brook work for Zeta Labs?": ("no",),
        "who worked for Zeta Labs in 2016?": ("none",),
    }.items():
        assert ask(question).answers == answers, question
    over = ask("who works for Zeta Labs?")
    assert over.confidence is not None and over.confidence < 0.5  # all have left
    proof = Calculator(solver.store, solver).reply(ask("where does Ana Brook work now?"))["proof"]
    assert proof == ("(Ana Brook, works for, Acme Tools; role: analyst; since: 2015)",)


def test_edge_properties_say_who_is_mayor_now_then_and_first(asking) -> None:
    ask, solver = asking("council.graphml", MAYORS)
    for question, answers in {
        "who is the mayor of Elmford?": ("Bo Lindqvist",),
        "who is the current mayor of Elmford?": ("Bo Lindqvist",),
        "who was mayor of Elmford in 2010?": ("Cleo Marr",),
        "who was mayor of Elmford before 2005?": ("Cleo Marr",),
        "who was the first mayor of Elmford?": ("Cleo Marr",),
        "since when is Bo Lindqvist mayor of Elmford?": ("2019",),
        "who was mayor of Elmford?": ("Ada Holm", "Bo Lindqvist", "Cleo Marr"),
        "who was mayor of Elmford in 1950?": ("none",),
        "who is the former mayor of Elmford?": (),
    }.items():
        assert ask(question).answers == answers, question
    solver.options = SymbolicOptions(current_facts=False)
    assert len(ask("who is the mayor of Elmford?").answers) == 3


def test_named_graphs_say_who_states_a_fact(asking) -> None:
    ask, _ = asking("council.trig", COUNCIL)
    for question, answers in {
        "who is mayor of Elmford?": ("Ada Holm", "Bo Lindqvist"),
        "who says that Ada Holm is mayor of Elmford?": ("g2019",),
        "who is mayor of Elmford according to g2019?": ("Ada Holm",),
        "who is mayor of Elmford according to the gazette?": (),
        "who was mayor of Elmford in 2010?": (),
    }.items():
        assert ask(question).answers == answers, question


def test_positions_of_a_wikidata_dump_are_dated_by_start_and_end_time(asking, tmp_path: Path) -> None:
    def snak(prop: str, value: object, kind: str) -> str:
        types = {"wikibase-entityid": "wikibase-item", "time": "time"}
        stated = {"value": value, "type": kind}
        return json.dumps({"snaktype": "value", "property": prop, "datatype": types[kind], "datavalue": stated})

    def time(year: int) -> dict[str, object]:
        return {"time": f"+{year}-01-01T00:00:00Z", "precision": 9, "timezone": 0, "before": 0, "after": 0,
                "calendarmodel": "http://www.wikidata.org/entity/Q1985727"}  # fmt: skip

    def entity(key: str, label: str, claims: str = "{}") -> str:
        kind = "property" if key.startswith("P") else "item"
        value = "time" if key in ("P580", "P582") else "wikibase-item"
        typed = f', "datatype": "{value}"' if kind == "property" else ""
        return (
            f'{{"type": "{kind}", "id": "{key}"{typed}, "labels": {{"en": {{"language": "en", "value": "{label}"}}}}, '
            f'"claims": {claims}}}'
        )

    statements = []
    for position, begin, end in (("Q10", 2001, 2009), ("Q11", 2009, None)):
        main = snak("P39", {"entity-type": "item", "id": position}, "wikibase-entityid")
        ended = f', "P582": [{snak("P582", time(end), "time")}]' if end else ""
        statements.append(f'{{"mainsnak": {main}, "type": "statement", "rank": "normal", "qualifiers": '
                          f'{{"P580": [{snak("P580", time(begin), "time")}]{ended}}}}}')  # fmt: skip
    lines = [
        entity("Q1", "Ida Sund", f'{{"P39": [{", ".join(statements)}]}}'), entity("Q10", "mayor of Vik"),
        entity("Q11", "governor of Fjell"), entity("P39", "position held"), entity("P580", "start time"),
        entity("P582", "end time"),
    ]  # fmt: skip
    ask, _ = asking("dump.json", "[\n" + ",\n".join(lines) + "\n]\n")
    assert ask("which position does Ida Sund hold?").answers == ("governor of Fjell",)
    assert ask("which position did Ida Sund hold in 2005?").answers == ("mayor of Vik",)
