"""The trace of an answer has a span for each step that was taken, with what it read and gave."""

from __future__ import annotations

from kgqa_core.answering.reply import Answer, AnswerFact, AnswerTopic, Effort
from kgqa_core.answering.trace import question_trace
from kgqa_core.llm.protocol import Completion
from kgqa_core.tracing import StepClock
from kgqa_core.types import Question

QUESTION = Question("q1", "Capital of Fiji?", topic_keys=("Fiji",), topic_entities=(7,), topic_weights=(0.9,))
ANSWER = Answer(
    "q1", "Capital of Fiji?", "Suva", "auto", "hop_path/triples", "(Fiji, capital, Suva)",
    topics=(AnswerTopic("Q712", "Fiji", "Fiji", 0.9),), facts=(AnswerFact("(Fiji, capital, Suva)", 1, 0.5, 1),),
    operation="none", form="(JOIN capital Q712)", answers=("Suva",), road="labels", answerable=True, confidence=0.8,
)  # fmt: skip


def clock(*steps: str) -> StepClock:
    found = StepClock()
    found.started = 100.0
    found.steps = {name: (100.0 + place, 1.0) for place, name in enumerate(steps)}
    return found


def test_a_computed_answer_has_linking_retrieval_knowledge_and_forms() -> None:
    took = clock("linking", "retrieval", "knowledge", "forms", "model", "wording")
    trace = question_trace(took, QUESTION, [("Fiji", [(7, 0.9), (8, 0.1)])], ANSWER, batch=4)
    assert [span.name for span in trace.spans] == ["linking", "retrieval", "knowledge", "forms"]
    linking, retrieval, knowledge, forms = trace.spans
    assert linking.outputs["mentions"] == [{"mention": "Fiji", "candidates": [[7, 0.9], [8, 0.1]]}]
    assert retrieval.inputs == {"topics": ["Q712"]} and retrieval.outputs["facts"][0]["text"] == ANSWER.text
    assert (knowledge.outputs, forms.outputs["form"]) == ({"text": ANSWER.text}, "(JOIN capital Q712)")
    assert (forms.started, forms.seconds, forms.prompt_tokens) == (103.0, 1.0, None)
    assert trace.inputs == {"question": "Capital of Fiji?"}, "its topics were linked, not given"
    assert (trace.started, trace.batch, trace.outputs) == (100.0, 4, ANSWER.to_dict())
    expected = {"road": "labels", "confidence": 0.8, "answerable": True, "model": "auto"}
    assert trace.attributes == expected | {"knowledge": "hop_path/triples"}


def test_a_model_has_its_prompt_and_tokens_and_an_explorer_those_of_its_calls() -> None:
    written = Answer("q1", "Capital of Fiji?", "Suva", "builtin", "none/none")
    trace = question_trace(
        clock("linking", "retrieval", "model"), QUESTION, (), written, prompt="Q: …",
        completion=Completion("Suva", "stop", 30, 2),
    )  # fmt: skip
    assert [span.name for span in trace.spans] == ["linking", "model"]
    model = trace.spans[-1]
    assert (model.inputs["prompt"], model.outputs["text"]) == ("Q: …", "Suva")
    assert (model.prompt_tokens, model.completion_tokens) == (30, 2)
    explored = Answer("q1", "?", "Suva", operation="agent", effort=Effort("answered", 3, 300, 20, ("look", "follow")))
    [_, forms] = question_trace(clock("linking", "forms"), QUESTION, (), explored).spans
    assert (forms.prompt_tokens, forms.completion_tokens, forms.outputs["steps"]) == (300, 20, ["look", "follow"])


def test_topics_that_were_given_and_the_dialogue_are_inputs() -> None:
    given = Question("q1", "And Fiji?", topic_keys=("Q712",), topic_entities=(7,), dialogue=(("user", "Hi"),))
    trace = question_trace(clock("linking"), given, (), ANSWER)
    assert trace.inputs == {"question": "And Fiji?", "topics": ["Q712"], "dialogue": [["user", "Hi"]]}
