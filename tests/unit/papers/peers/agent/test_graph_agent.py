"""An agent over the graph, against a real endpoint on loopback whose model reads the tools' results, or misbehaves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from kgqa_core.answering.exploration import Exploration, ExplorerInputs
from kgqa_core.answering.explore import counts_of, explore, open_explorer
from kgqa_core.answering.explored import read_efforts
from kgqa_core.config import AgentOptions, BudgetOptions, LlmOptions
from kgqa_core.datasets.derived.splits import QuestionSample
from kgqa_core.datasets.files.question import write_questions
from kgqa_core.errors import BudgetReached, ConfigError, EndpointError, ModelError
from kgqa_core.llm.budget import Budget
from kgqa_core.llm.cache import ResponseCache
from kgqa_core.llm.openai_api import OpenAIModel
from kgqa_core.llm.reply import message_text
from kgqa_core.papers.peers.agent.explorer import GraphAgent
from kgqa_core.papers.peers.agent.forms import ANSWER, CHOOSE_RELATIONS, FOLLOW_OUT, OPERATIONS, UnreadableStep
from kgqa_core.papers.peers.agent.operations import ExplorationSession, NamedGraph, OperationRefused
from kgqa_core.papers.peers.agent.protocols import PROTOCOLS, JsonSchema, ToolCalls
from kgqa_core.symbolic.tables import read_computed
from kgqa_core.workspace import Workspace
from tests.support.chat_server import ChatServer, Fault
from tests.support.explored_graph import OpenGraph, write_explored_graph
from tests.support.scripted_agent import ScriptedAgent

CAPITAL = "What is the capital of Avalonia?"
MAYOR = "Who is the mayor of the capital of Avalonia?"
BOTH = pytest.mark.parametrize("protocol", list(PROTOCOLS))


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> OpenGraph:
    return OpenGraph(write_explored_graph(tmp_path_factory.mktemp("explored")))


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(act=ScriptedAgent()) as found:
        yield found


def agent(graph: OpenGraph, server: ChatServer, *, cache: ResponseCache | None = None, **options: Any) -> GraphAgent:
    own = AgentOptions(**options)
    model = OpenAIModel("stub", LlmOptions(base_url=server.base_url, timeout_seconds=5.0, retries=1), first_wait=0.01)
    return GraphAgent(NamedGraph(graph.dkg, graph.store, own.shown), model, own, attempts=2, cache=cache)


def one(
    graph: OpenGraph, server: ChatServer, text: str = CAPITAL, topic: str = "Avalonia", **options: Any
) -> Exploration:
    return agent(graph, server, **options).explore([graph.question(text, topic)])[0]


def facts_of(graph: OpenGraph, found: Exploration) -> list[tuple[str, str, str]]:
    names, rows = graph.store.names(range(graph.dkg.entities)), graph.store.triples(found.facts)
    keys = graph.dkg.relation_keys
    return [(names[rows[t][0]], keys[rows[t][1]].rpartition("/")[2], names[rows[t][2]]) for t in found.facts]


@BOTH
def test_loop_follows_what_the_tools_return_and_proves_its_answer(
    graph: OpenGraph, server: ChatServer, protocol: str
) -> None:
    found = one(graph, server, protocol=protocol)
    assert (found.end, found.names, found.keys) == ("answered", ("Zweib",), ("http://x/Q2",))
    assert facts_of(graph, found) == [("Avalonia", "capital", "Zweib")]
    assert (found.calls, found.operations, found.refused, found.unreadable) == (4, 3, 0, 0)
    stats = server.stats()
    assert (found.calls, found.prompt_tokens, found.completion_tokens) == (
        stats["requests"], stats["prompt_tokens"], stats["completion_tokens"],
    )  # fmt: skip
    assert found.steps[0].endswith("relations_out(Avalonia): capital") and "answer(Zweib)" in found.steps[-1]


@BOTH
def test_loop_goes_two_hops_with_the_entities_that_it_was_shown(
    graph: OpenGraph, server: ChatServer, protocol: str
) -> None:
    server.act = ScriptedAgent(hops=2)
    found = one(graph, server, MAYOR, protocol=protocol)
    assert found.names == ("Ann Alder",)
    assert facts_of(graph, found) == [("Zweib", "mayor", "Ann Alder"), ("Avalonia", "capital", "Zweib")]


@BOTH
def test_beam_prunes_relations_and_entities_and_stops_when_the_facts_are_enough(
    graph: OpenGraph, server: ChatServer, protocol: str
) -> None:
    found = one(graph, server, policy="beam", protocol=protocol)
    assert found.names == ("Zweib",) and facts_of(graph, found) == [("Avalonia", "capital", "Zweib")]
    assert found.calls == 3, "relations of the topic, the judgement, the answer: a single entity is not pruned"
    assert found.steps[:2] == ("relations of Avalonia: capital (out)", "entities by capital: Zweib")


def test_beam_keeps_its_width_at_each_depth_and_visits_no_entity_twice(graph: OpenGraph, server: ChatServer) -> None:
    server.act = ScriptedAgent(restless=True)
    text = "Which citizen lives in the capital, with its mayor, spouse and twin city, born or located?"
    found = one(graph, server, text, "Quelmar", policy="beam", width=2, depth=3)
    assert found.calls <= 3 * (2 + 2 * 2 + 1) + 1, "at most W + W·W + 1 a depth, and the answer (Sun et al. 2024)"
    facts = facts_of(graph, found)
    assert 2 < len(facts) <= 6
    ends = [end for head, relation, tail in facts for end in (head, tail)]
    assert max(ends.count(end) for end in set(ends) - {"Quelmar"}) <= 3


def test_beam_pruning_that_cannot_be_read_keeps_nothing_and_still_answers(graph: OpenGraph, server: ChatServer) -> None:
    server.act = ScriptedAgent(mischief={0: "garbled"}, stubborn=True)
    found = one(graph, server, policy="beam")
    assert found.names == () and found.unreadable >= 2 and found.end == "unreadable"


@BOTH
@pytest.mark.parametrize(
    "mischief", ["garbled", "unknown tool", "no call", "missing argument", "wrong type", "refusal"]
)
def test_reply_that_cannot_be_read_is_tried_again_and_counted(
    graph: OpenGraph, server: ChatServer, protocol: str, mischief: str
) -> None:
    server.act = ScriptedAgent(mischief={1: mischief})
    found = one(graph, server, protocol=protocol)
    assert (found.names, found.unreadable, found.calls) == (("Zweib",), 1, 5)
    assert any(step.startswith("unreadable: ") for step in found.steps)
    assert found.calls == server.stats()["requests"] and found.prompt_tokens == server.stats()["prompt_tokens"]


@pytest.mark.parametrize("mischief", ["garbled", "refusal"])
def test_model_that_never_makes_sense_is_given_up_after_bounded_tries(
    graph: OpenGraph, server: ChatServer, mischief: str
) -> None:
    server.act = ScriptedAgent(mischief=dict.fromkeys(range(9), mischief), stubborn=True)
    found = one(graph, server, faults=2)
    assert (found.end, found.names, found.facts) == ("unreadable", (), ())
    assert found.calls == found.unreadable == 6 == server.stats()["requests"], "three turns of two attempts each"


def test_operation_on_a_stranger_is_refused_in_words_and_counted(graph: OpenGraph, server: ChatServer) -> None:
    server.act = ScriptedAgent(mischief={1: "stranger"})
    found = one(graph, server)
    assert (found.names, found.refused, found.unreadable) == (("Zweib",), 1, 0)
    assert any("no entity 'Atlantis' was shown" in json.dumps(body) for body in server.bodies)


def test_second_call_in_a_message_is_not_carried_out(graph: OpenGraph, server: ChatServer) -> None:
    server.act = ScriptedAgent(mischief={0: "two calls"})
    found = one(graph, server)
    assert found.names == ("Zweib",) and found.operations == 3


@BOTH
def test_last_turn_offers_the_answer_alone(graph: OpenGraph, server: ChatServer, protocol: str) -> None:
    server.act = ScriptedAgent(restless=True)
    found = one(graph, server, protocol=protocol, turns=4)
    assert (found.end, found.calls, found.names) == ("answered", 4, ("Zweib",))
    asked = server.bodies[-1]
    if protocol == "tools":
        assert [tool["function"]["name"] for tool in asked["tools"]] == ["answer"]
        assert asked["tool_choice"] == {"type": "function", "function": {"name": "answer"}}
    else:
        schema = asked["response_format"]["json_schema"]["schema"]
        assert schema["properties"]["operation"]["enum"] == ["answer"]


@pytest.mark.parametrize("policy", ["loop", "beam"])
@pytest.mark.parametrize("calls", [1, 2, 3, 5])
def test_limit_of_calls_holds_and_keeps_the_last_one_for_the_answer(
    graph: OpenGraph, server: ChatServer, policy: str, calls: int
) -> None:
    server.act = ScriptedAgent(restless=True)
    found = one(graph, server, MAYOR, policy=policy, calls=calls, turns=50, depth=3)
    assert (found.end, found.calls) == ("answered", calls) and calls == server.stats()["requests"]


@pytest.mark.parametrize("calls", [1, 2, 3, 5])
def test_rejected_replies_count_towards_the_limit_of_calls(graph: OpenGraph, server: ChatServer, calls: int) -> None:
    server.act = ScriptedAgent(mischief=dict.fromkeys(range(9), "garbled"), stubborn=True)
    found = one(graph, server, calls=calls, faults=9)
    assert found.calls == found.unreadable == server.stats()["requests"] <= calls


def test_limit_of_tokens_ends_a_question_before_the_request_that_would_exceed_it(
    graph: OpenGraph, server: ChatServer
) -> None:
    server.act = ScriptedAgent(restless=True)
    server.tokens = lambda text: len(text) // 4
    found = one(graph, server, tokens=3000, turns=50, max_new_tokens=64)
    assert found.end == "limit" and 1000 < found.prompt_tokens + found.completion_tokens <= 3000
    assert found.facts and found.names == ()


def test_observation_of_a_hub_is_cut_and_says_by_how_much(graph: OpenGraph) -> None:
    session = ExplorationSession(NamedGraph(graph.dkg, graph.store, 10), [graph.ids["Quelmar"]])
    relation = session.relation("http://x/lives_in")
    targets, more = session.follow(graph.ids["Quelmar"], relation, out=False)
    assert (len(targets), more) == (10, 50) and targets == sorted(targets)


def test_entities_of_one_name_are_told_apart_by_their_keys(graph: OpenGraph) -> None:
    session = ExplorationSession(NamedGraph(graph.dkg, graph.store, 10), [graph.ids["Q2"]])
    targets, _ = session.follow(graph.ids["Q2"], session.relation("http://x/twin_city"), out=True)
    names = session.show(targets)
    assert names == ("Twinham [http://x/Q6]", "Twinham [http://x/Q8]")
    assert [session.entity(name) for name in names] == targets == [graph.ids["Q6"], graph.ids["Q8"]]
    assert session.entity("zweib") == graph.ids["Q2"]
    with pytest.raises(OperationRefused, match="no entity 'Twinham' was shown"):
        session.entity("Twinham")


def test_every_directed_edge_is_an_operation_away(graph: OpenGraph) -> None:
    """Relations out and in, followed out and in, are the edges of the graph: none more, none less."""
    view, found = NamedGraph(graph.dkg, graph.store, 1000), set()
    for entity in range(graph.dkg.entities):
        for out in (True, False):
            for relation in view.relations(entity, out=out):
                edges = view.follow(entity, relation, out=out)
                assert len(edges) and set(graph.dkg.source_of(edges).tolist()) == {entity}
                found.update(edges.tolist())
    assert found == set(range(graph.dkg.edges_stored))


def test_killed_exploration_pays_for_nothing_again(graph: OpenGraph, server: ChatServer, tmp_path: Path) -> None:
    cache = ResponseCache(tmp_path / "responses.sqlite")
    questions = [
        graph.question(CAPITAL, "Avalonia"),
        graph.question("What is the capital of Bergonia?", "Bergonia", id="q2"),
    ]
    first = agent(graph, server, cache=cache).explore(questions)
    paid = server.stats()["requests"]
    again = agent(graph, server, cache=cache).explore(questions)
    assert first == again and server.stats()["requests"] == paid == sum(each.calls for each in first)


def test_budget_stops_an_exploration_before_the_call_and_a_larger_one_goes_on(
    graph: OpenGraph, server: ChatServer, tmp_path: Path
) -> None:
    def inputs(calls: int) -> ExplorerInputs:
        llm = LlmOptions(base_url=server.base_url)
        budget = Budget(BudgetOptions(max_calls=calls), ledger=tmp_path / "responses.sqlite")
        return ExplorerInputs(graph.dkg, graph.store, "openai:stub", AgentOptions(), llm, cache=tmp_path, budget=budget)

    with pytest.raises(BudgetReached):
        open_explorer("agent:openai:stub", inputs(2)).explore([graph.question(CAPITAL, "Avalonia")])
    assert server.stats()["requests"] == 2
    [found] = open_explorer("agent:openai:stub", inputs(4)).explore([graph.question(CAPITAL, "Avalonia")])
    assert found.names == ("Zweib",) and server.stats()["requests"] == found.calls == 4


def test_endpoint_that_is_down_ends_the_exploration_of_all(graph: OpenGraph, server: ChatServer) -> None:
    server.always("", Fault(status=401))
    with pytest.raises(EndpointError, match="does not answer for model 'stub'"):
        one(graph, server)


def test_endpoint_that_fails_on_one_question_leaves_the_others(graph: OpenGraph, server: ChatServer) -> None:
    server.always("Bergonia", Fault(status=500))
    asked = [graph.question(CAPITAL, "Avalonia"), graph.question("What is the capital of it?", "Bergonia", id="q2")]
    found = agent(graph, server).explore(asked)
    assert [(each.end, each.names) for each in found] == [("answered", ("Zweib",)), ("error", ())]


def test_question_without_topic_costs_nothing_and_dead_end_answers_none(graph: OpenGraph, server: ChatServer) -> None:
    [found] = agent(graph, server).explore([graph.question("Who?")])
    assert (found.end, found.calls, found.names) == ("no topic", 0, ())


def test_stage_writes_answers_proof_and_what_each_question_took(
    graph: OpenGraph, server: ChatServer, tmp_path: Path
) -> None:
    (tmp_path / "questions").mkdir()
    (tmp_path / "out").mkdir()
    asked = [graph.question(CAPITAL, "Avalonia"), graph.question("Who?", id="q2")]
    write_questions(tmp_path / "questions", asked)
    counts = explore(
        Workspace(tmp_path / "out"),
        kg=graph.folders["kg"],
        dkg=graph.folders["dkg"],
        questions=tmp_path / "questions",
        answerer="agent:openai:stub",
        section=AgentOptions(),
        llm=LlmOptions(base_url=server.base_url),
        sample=QuestionSample(split="test", limit=None, seed=7),
    )
    assert (counts["questions"], counts["answered"], counts["calls"], counts["calls_a_question"]) == (2, 1, 4, 2.0)
    assert counts["ends"] == {"answered": 1, "no topic": 1}
    table = read_computed(tmp_path / "out", ("question", "kind", "answers", "keys"))
    assert table.rows() == [("q1", "agent", ["Zweib"], ["http://x/Q2"]), ("q2", "agent", [], [])]
    proof = pl.read_parquet(tmp_path / "out" / "proof.parquet")
    assert proof.select("question", "text").rows() == [("q1", "(Avalonia, capital, Zweib)")]
    efforts = read_efforts(tmp_path / "out")
    assert efforts["q1"].calls == 4 and efforts["q1"].prompt_tokens == counts["prompt_tokens"]
    assert efforts["q2"].end == "no topic"


def test_answerers_that_do_not_explore_and_models_without_endpoint_are_refused(graph: OpenGraph) -> None:
    inputs = ExplorerInputs(graph.dkg, graph.store, "builtin", AgentOptions(), LlmOptions())
    with pytest.raises(ConfigError, match="'auto' does not explore the graph; those that do are agent, gcr"):
        open_explorer("auto", inputs)
    with pytest.raises(ModelError, match="calls tools of an endpoint, and 'builtin' is none; write agent:openai:MODEL"):
        open_explorer("agent:builtin", inputs)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[]", "no object"), ("{", "no JSON"), ('{"operation": "fly"}', "'fly', which is none of"),
        ('{"operation": "answer", "answers": "Rome"}', "no array"),
        ('{"operation": "answer", "answers": [1]}', "an item of"), ('{"operation": "follow_out"}', "has no 'entity'"),
    ],
)  # fmt: skip
def test_reply_by_schema_that_does_not_fit_says_why(text: str, why: str) -> None:
    with pytest.raises(UnreadableStep, match=why):
        JsonSchema().read(text, (*OPERATIONS, ANSWER))


def test_reply_in_a_fenced_block_behind_a_thought_is_read() -> None:
    written = '<think>Rome?</think>```json\n{"operation": "answer", "thought": "so", "answers": ["Rome"]}\n```'
    found = JsonSchema().read(written, (ANSWER,))
    assert (found.form, found.arguments, found.thought) == ("answer", {"answers": ["Rome"]}, "so")
    call = message_text("<think>x</think>ok", [("follow_out", '{"entity": "a", "relation": "b", "more": 1}')])
    found = ToolCalls().read(call, (FOLLOW_OUT,))
    assert (found.arguments, found.thought) == ({"entity": "a", "relation": "b"}, "ok")
    with pytest.raises(UnreadableStep, match="an item of 'relations' .* has no 'direction'"):
        CHOOSE_RELATIONS.check({"relations": [{"relation": "a", "score": 1}]})


def test_means_are_over_all_questions() -> None:
    rows = [
        Exploration("a", "answered", ("x",), calls=3, prompt_tokens=10, completion_tokens=2),
        Exploration("b", "limit"),
    ]
    counts = counts_of(rows)
    assert (counts["calls_a_question"], counts["tokens_a_question"], counts["answered"]) == (1.5, 6.0, 1)
