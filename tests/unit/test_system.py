"""The system finds out what a question is about, or is told."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from kgqa_core.abstention.apply import AbstentionJudge, Verdict
from kgqa_core.abstention.evidence import Evidence
from kgqa_core.answering.registry import KNOWLEDGE_FORMATS, answerer_spec
from kgqa_core.answering.reply import Answer, AnswerTopic
from kgqa_core.config import AnsweringOptions, DkgOptions, KgOptions, LinkingOptions, PassagesOptions, SymbolicOptions
from kgqa_core.datasets.files.question import read_questions, write_questions
from kgqa_core.dkg.export import export
from kgqa_core.errors import EndpointError, InputError, KgqaError
from kgqa_core.kg.build import build as build_kg
from kgqa_core.linking.dictionary import build as build_mentions
from kgqa_core.linking.questions import link_questions
from kgqa_core.llm.protocol import Completion
from kgqa_core.passages.search import PassageSearch
from kgqa_core.report.console import ask_tables
from kgqa_core.retrieval.linked_candidates import with_linked_candidates
from kgqa_core.runs.finished import SystemParts
from kgqa_core.symbolic.auto import AutoSolver
from kgqa_core.symbolic.by_labels.calibrate import INPUTS, Calibration
from kgqa_core.symbolic.by_labels.model import LabelModel, untrained
from kgqa_core.symbolic.compute import Calculator
from kgqa_core.system import System
from kgqa_core.tracing import QuestionTrace
from kgqa_core.types import Question, Retrieved
from kgqa_core.workspace import Workspace

TRIPLES = """\
<http://x/Q1> <http://x/capital> <http://x/Q2> .
<http://x/Q3> <http://x/capital> <http://x/Q4> .
<http://x/Q1> <http://www.w3.org/2000/01/rdf-schema#label> "Avalonia"@en .
<http://x/Q2> <http://www.w3.org/2000/01/rdf-schema#label> "Zweibrücken"@en .
<http://x/Q3> <http://www.w3.org/2000/01/rdf-schema#label> "Bergonia"@en .
<http://x/Q4> <http://www.w3.org/2000/01/rdf-schema#label> "Quelmar"@en .
<http://x/Q5> <http://x/capital> <http://x/Q4> .
<http://x/Q6> <http://x/capital> <http://x/Q2> .
<http://x/Q6> <http://x/twin> <http://x/Q2> .
<http://x/Q5> <http://www.w3.org/2000/01/rdf-schema#label> "Twinham"@en .
<http://x/Q6> <http://www.w3.org/2000/01/rdf-schema#label> "Twinham"@en .
"""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A graph, its arrays and its mention dictionary."""
    folder = tmp_path_factory.mktemp("graph")
    (folder / "graph.nt").write_text(TRIPLES, encoding="utf-8")
    found = {name: folder / name for name in ("kg", "dkg", "mentions")}
    for own in found.values():
        own.mkdir()
    build_kg(Workspace(found["kg"]), options=KgOptions(files=(str(folder / "graph.nt"),)))
    export(Workspace(found["dkg"]), kg=found["kg"], options=DkgOptions())
    build_mentions(Workspace(found["mentions"]), kg=found["kg"])
    return found


@pytest.fixture(scope="module")
def system(folders: dict[str, Path]) -> System:
    return System.open(SystemParts(**folders, knowledge="random/triples"))


def test_what_a_question_is_about_is_found_in_it(system: System) -> None:
    reply = system.ask("What is the capital of ávalonia?")
    [topic] = reply.topics
    assert (topic.key, topic.name, topic.mention) == ("http://x/Q1", "Avalonia", "ávalonia")
    assert LinkingOptions().threshold <= topic.rho <= 1
    assert [fact.text for fact in reply.facts] == ["(Avalonia, capital, Zweibrücken)"]


def test_what_it_is_told_wins_over_what_it_reads(system: System) -> None:
    reply = system.ask("What is the capital of Avalonia?", ["Bergonia"])
    assert reply.topics == (AnswerTopic("Bergonia", "Bergonia"),)


def test_topics_that_mean_too_many_entities_are_refused(system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(system.ask("What is the capital?", ["Twinham"]).topics) == 2
    monkeypatch.setattr("kgqa_core.linking.questions.TOPIC_ENTITIES", 1)
    with pytest.raises(InputError, match="the topics mean 2 entities, and may mean 1; give their keys"):
        system.ask("What is the capital?", ["Twinham"])


def test_the_first_line_says_what_was_linked_and_how_surely(system: System) -> None:
    linked = {**system.ask("What is the capital of Avalonia?").to_dict(), "seconds": 0.1}
    rho = linked["topics"][0]["rho"]
    assert str(ask_tables(linked)[0]) == f"linked Avalonia (link score {rho:.2f})"
    folded = {**system.ask("what is the capital of ZWEIBRUCKEN").to_dict(), "seconds": 0.1}
    assert str(ask_tables(folded)[0]).startswith("linked Zweibrücken by “ZWEIBRUCKEN” (link score ")
    told = {**system.ask("What?", ["Avalonia"]).to_dict(), "seconds": 0.1}
    assert "linked" not in str(ask_tables(told)[0])


def test_a_question_about_nothing_known_names_the_way_out(system: System) -> None:
    reply = system.ask("How late is it in Avalloniaah?")
    assert (reply.answer, reply.answerable, reply.reason) == (None, False, "entity not found")
    assert (reply.missing, reply.nearest) == ("Avalloniaah", "Avalonia")
    assert (reply.confidence, reply.calibrated, reply.topics, reply.facts) == (None, False, (), ())
    line = str(ask_tables({**reply.to_dict(), "seconds": 0.1})[0])
    assert line.startswith("not in this graph: entity not found: Avalloniaah (nearest: Avalonia)   0.10 s")
    always = replace(system, judge=AbstentionJudge(system.store, None, 0.0)).ask("How late is it in Avalloniaah?")
    assert always.answerable and always.answer == reply.model_answer and always.confidence is None
    with pytest.raises(InputError, match="topic entity 'Nobody' is not in this graph"):
        system.ask("What?", ["Nobody"])


@pytest.mark.parametrize("least", [None, 0.99])
def test_the_threshold_of_an_answer_is_the_one_that_decided_and_a_withheld_answer_has_its_confidence(
    system: System, least: float | None
) -> None:
    calibration = Calibration((0.0,) * INPUTS, 0.0, 0.3)  # 0.5 of every answer
    solver = AutoSolver(system.store, SymbolicOptions(), LabelModel(untrained(7), 2, calibration), least)
    auto = replace(
        system, answerer=answerer_spec("auto"), answering=AnsweringOptions(answerer="auto"),
        calculator=Calculator(system.store, solver), judge=AbstentionJudge(system.store, None, least),
    )  # fmt: skip
    reply = auto.ask("What is the capital of Bergonia?")
    assert reply.confidence is not None and reply.min_confidence == (0.3 if least is None else least)
    assert reply.answerable is (reply.confidence >= reply.min_confidence) and "min_confidence" in reply.to_row()
    assert reply.declined == (None if reply.answerable else "not sure")
    shown = "   confidence 0.50, about" if reply.answerable else "I am not sure (confidence 0.50, needs 0.99)   about"
    assert shown in str(ask_tables({**reply.to_dict(), "seconds": 0.1})[1])
    chosen = auto.at_reading(2).ask("What is the capital of Bergonia?")
    assert chosen.answerable and chosen.proof and chosen.declined is None
    if not reply.answerable:
        assert chosen.form == reply.readings[1].form
    with pytest.raises(InputError, match="offers no readings; `auto` does"):
        system.at_reading(1)


def test_an_answer_without_a_calibration_says_so(system: System) -> None:
    reply = system.ask("What is the capital of Avalonia?")
    assert (reply.answerable, reply.confidence, reply.min_confidence) == (True, None, None)
    assert "confidence not calibrated" in str(ask_tables({**reply.to_dict(), "seconds": 0.1})[1])


def test_a_model_without_knowledge_needs_no_entity(folders: dict[str, Path]) -> None:
    reply = System.open(SystemParts(**folders, knowledge="none/none")).ask("How late is it?")
    assert reply.topics == () and reply.facts == ()
    assert "about" not in str(ask_tables({**reply.to_dict(), "seconds": 0.1})[0])


class Listening:
    """A retriever, a passage search and a model in one, which find nothing and keep what they are asked."""

    options = PassagesOptions()

    def __init__(self, name: str = "listening", candidates: int = 0) -> None:
        self.name, self.candidates = name, candidates
        self.asked: list[Question] = []
        self.searched: list[str] = []
        self.prompts: list[str] = []

    def retrieve(self, questions: list[Question], monitor: object = None) -> list[Retrieved]:
        self.asked += questions
        return [Retrieved(question.id) for question in questions]

    def search(self, texts: list[str]) -> list[list[tuple[int, float]]]:
        self.searched += texts
        return [[] for _ in texts]

    def read(self, ranked: object) -> list[object]:
        return []

    def generate(self, prompts: list[str], params: object) -> list[Completion]:
        self.prompts += prompts
        return [Completion("nobody knows")]


def test_a_retriever_starts_from_the_candidates_that_it_learnt_to_start_from(
    system: System, folders: dict[str, Path], tmp_path: Path
) -> None:
    text = "What is the capital of Twinham, or of Avalonia?"
    listening = Listening(candidates=2)
    soft = replace(system, retriever=cast(Any, listening))
    topics = soft.ask(text).topics
    for name in ("asked", "linked"):
        (tmp_path / name).mkdir()
    write_questions(tmp_path / "asked", [Question("ask", text)])
    link_questions(
        Workspace(tmp_path / "linked"),
        kg=folders["kg"],
        mentions=folders["mentions"],
        questions=tmp_path / "asked",
        options=LinkingOptions(),
    )
    [stage] = with_linked_candidates(read_questions(tmp_path / "linked"), tmp_path / "linked", 2)
    [asked] = listening.asked
    assert len(asked.topic_entities) == 3 and sorted(asked.topic_mentions) == [0, 0, 1]
    assert (asked.topic_entities, asked.topic_weights, asked.topic_mentions, asked.topic_keys) == (
        stage.topic_entities, stage.topic_weights, stage.topic_mentions, stage.topic_keys,
    )  # fmt: skip
    assert topics == system.ask(text).topics and len(topics) == 2


class Seeing:
    """A judge that answers everything and keeps what it is shown."""

    abstainer, threshold = None, 0.0

    def judge(self, evidence: list[Evidence]) -> list[Verdict]:
        self.seen = evidence
        return [Verdict(1.0, True, True) for _ in evidence]


def test_further_retrievers_start_from_their_own_candidates_and_find_nothing_without_a_topic(system: System) -> None:
    one, two, judge = Listening("one"), Listening("two", candidates=2), Seeing()
    hearing = replace(
        system,
        others=cast(Any, [one, two]),
        judge=cast(AbstentionJudge, judge),
    )
    hearing.ask("What is the capital of Twinham?")
    assert [len(asked.topic_entities) for asked in (one.asked[0], two.asked[0])] == [1, 2]
    hearing.ask("How late is it?")
    [evidence] = judge.seen
    assert len(one.asked) == len(two.asked) == 1
    assert evidence.retrieved == {name: Retrieved("ask") for name in ("random", "one", "two")}


def test_earlier_turns_are_linked_searched_and_read(system: System) -> None:
    listening = Listening()
    answering = AnsweringOptions(template="ltgen2024")
    hearing = replace(
        system,
        retriever=cast(Any, listening),
        model=listening,
        writer=replace(system.writer, search=cast(PassageSearch, listening), spec=KNOWLEDGE_FORMATS["both"]),
        answering=answering,
    )
    reply = hearing.ask("And its capital?", dialogue=[("user", "Tell me of Avalonia."), ("agent", "It is old.")])
    assert [topic.mention for topic in reply.topics] == ["Avalonia"]
    assert listening.searched == ["And its capital? It is old. Tell me of Avalonia."]
    assert listening.prompts[0].endswith("User: Tell me of Avalonia.\nAgent: It is old.\nUser: And its capital?")
    told = hearing.ask("And its capital?", ["Bergonia"], [("user", "Tell me of Avalonia.")])
    assert told.topics == (AnswerTopic("Bergonia", "Bergonia"),)
    assert "User: Tell me of Avalonia." in listening.prompts[1]
    with pytest.raises(InputError, match="by 'nobody'; the roles are user and agent"):
        hearing.ask("What?", dialogue=[("nobody", "x")])


class Failing(Listening):
    """A model that fails on what is about Bergonia."""

    def generate(self, prompts: list[str], params: object) -> list[Completion]:
        return [
            Completion("", "error", error="status 500") if "Bergonia" in prompt else Completion("Zweibrücken")
            for prompt in prompts
        ]


def test_a_question_on_which_the_model_fails_is_rejected_and_no_empty_answer(system: System) -> None:
    failing = replace(system, model=Failing())
    batch = [Question(name, f"What is the capital of {name}?") for name in ("Avalonia", "Bergonia")]
    good, bad = failing.answer(batch)
    assert (good.answer, good.reject) == ("Zweibrücken", None)
    assert (bad.answer, bad.reject) == (None, "the language model failed: status 500")
    with pytest.raises(KgqaError, match="the language model failed: status 500") as local:
        failing.ask("What is the capital of Bergonia?")
    assert not isinstance(local.value, EndpointError)
    with pytest.raises(EndpointError, match="status 500"):
        replace(system, model=Failing("openai:m")).ask("What is the capital of Bergonia?")


def test_without_a_dictionary_it_must_be_told(folders: dict[str, Path]) -> None:
    given = {name: folders[name] for name in ("kg", "dkg")}
    system = System.open(SystemParts(**given, knowledge="random/triples"))
    with pytest.raises(InputError, match="opened without `mentions`"):
        system.ask("What is the capital of Avalonia?")
    assert system.ask("What is its capital?", ["Avalonia"]).facts


@pytest.mark.parametrize("threads", [4, 20])
def test_a_language_model_answers_threads_as_one_after_the_other(system: System, threads: int) -> None:
    texts = ["What is the capital of Avalonia?", "What is the capital of Bergonia?", "Twinham's capital?", "Avaloniaa?"]
    alone = [system.ask(text) for text in texts]
    with ThreadPoolExecutor(threads) as pool:
        assert list(pool.map(system.ask, texts * 5)) == alone * 5


class Waiting(Listening):
    """A model that writes when as many wait for it as there are places."""

    def __init__(self, places: int) -> None:
        super().__init__()
        self.all_here = threading.Barrier(places)

    def generate(self, prompts: list[str], params: object) -> list[Completion]:
        self.all_here.wait(20)
        return super().generate(prompts, params)


def test_nobody_waits_for_the_language_model_of_another(system: System) -> None:
    slow = replace(system, model=Waiting(8))
    with ThreadPoolExecutor(8) as pool:
        asked = list(pool.map(slow.ask, ["What is the capital of Avalonia?"] * 8))
    assert [one.answer for one in asked] == ["nobody knows"] * 8


def test_an_event_loop_goes_on_while_a_question_is_answered_and_who_cancels_waits_no_longer(system: System) -> None:
    async def ask() -> list[Answer]:
        waiting = replace(system, model=Waiting(2))  # which one alone does not get through
        given_up = asyncio.create_task(waiting.aask("What is the capital of Avalonia?"))
        await asyncio.sleep(0.05)
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        return [await waiting.aask("What is the capital of Bergonia?"), await system.aask("How late is it?")]

    first, second = asyncio.run(ask())
    assert first.answer == "nobody knows" and second == system.ask("How late is it?")


def test_a_batch_takes_plain_texts_beside_questions(system: System) -> None:
    text = "What is the capital of Avalonia?"
    answers = system.answer([text, Question("mine", text), " "])
    assert [one.id for one in answers] == ["1", "mine", "3"] and answers[2].reject
    assert answers[0] == replace(answers[1], id="1") and answers[0].output == system.ask(text).output
    with pytest.raises(InputError, match="takes a list of questions, and 'What is the capital of Avalonia"):
        system.answer(text)
    with pytest.raises(InputError, match="'2' stands more than once"):
        system.answer([Question("2", text), text])


def test_questions_of_a_batch_have_ids_of_their_own(system: System) -> None:
    batch = [Question(name, f"What is the capital of {name}?") for name in ("Avalonia", "Bergonia")]
    assert [one.text for one in system.answer(batch)] == [system.ask(one.text).text for one in batch]
    with pytest.raises(InputError, match="'Avalonia' stands more than once"):
        system.answer([batch[0], *batch])


def test_a_tracer_gets_the_questions_that_it_wants_and_says_which_trace_is_whose(system: System) -> None:
    class Every2nd:
        def __init__(self) -> None:
            self.calls, self.traces = 0, list[QuestionTrace]()

        def wants(self) -> bool:
            self.calls += 1
            return self.calls % 2 == 0

        def record(self, trace: QuestionTrace) -> str:
            self.traces.append(trace)
            return f"tr-{len(self.traces)}"

    tracer, names = Every2nd(), dict[str, str]()
    traced = replace(system, tracer=tracer)
    texts = ["What is the capital of Avalonia?", "What is the capital of Bergonia?", "How late is it?"]
    answers = traced.answer([Question(f"q{n}", text) for n, text in enumerate(texts)], names)
    assert tracer.calls == 3 and names == {"q1": "tr-1"}
    [trace] = tracer.traces
    assert [span.name for span in trace.spans] == ["linking", "retrieval", "knowledge", "model"]
    assert trace.outputs == answers[1].to_dict() and trace.batch == 3
    assert "Bergonia" in trace.spans[-1].inputs["prompt"] and trace.spans[-1].prompt_tokens
    ends = [span.started + span.seconds for span in trace.spans]
    assert ends == sorted(ends) and ends[-1] <= trace.started + trace.seconds
    assert [one.to_dict() for one in answers] == [
        one.to_dict() for one in system.answer([Question(f"q{n}", text) for n, text in enumerate(texts)])
    ]
    traced.ask(texts[0], traces=names)
    assert names["ask"] == "tr-2"
