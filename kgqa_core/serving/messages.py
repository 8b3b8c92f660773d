"""What clients send to the HTTP server and get back, with examples for its OpenAPI page."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from kgqa_core.answering.reply import AnswerTopic
from kgqa_core.metrics.text import GoldAnswers, contains
from kgqa_core.serving.ask_record import Ask, AskReply
from kgqa_core.serving.feedback import Feedback, IssuedAnswer
from kgqa_core.serving.service import Served
from kgqa_core.types import OFFERED

BATCH = 256
"""Questions of one request at most."""

Name = Annotated[str, Field(max_length=200)]
Confidence = Annotated[float, Field(ge=0, le=1)]
Reading = Annotated[int, Field(ge=0, le=OFFERED)]


class Turn(BaseModel):
    """An earlier turn of the dialogue.  role: who spoke; `assistant` is the agent."""

    model_config = ConfigDict(extra="forbid")

    role: Literal["user", "agent", "assistant"]
    content: str


class AskRequest(BaseModel):
    """A question; how long it and its parts may be, `question_limits` says.

    topics: keys or labels of the entities that it is about; found in it when absent.  dialogue: earlier turns, oldest
    first.  knowledge: `retriever/format` that is read, in place of the server's.  min_confidence: below which nothing
    is answered, in place of the system's; 0 always answers.  reading: the number, from 1 on, of one of the `readings`
    of a decline, which is answered with its proof.  stream: the steps of `POST /ask` come as events.
    """

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"question": "What is the capital of New Zealand?"},
                                        {"question": "And its currency?", "topics": ["New Zealand"]}]},
    )  # fmt: skip

    question: str
    topics: list[str] = []
    dialogue: list[Turn] = []
    knowledge: Name | None = None
    min_confidence: Confidence | None = None
    reading: Reading = 0
    stream: bool = False

    def ask(self) -> Ask:
        """The question as the service takes it."""
        turns = tuple(("user" if turn.role == "user" else "agent", turn.content) for turn in self.dialogue)
        return Ask(self.question, tuple(self.topics), turns, self.knowledge, self.min_confidence, self.reading)


class BatchRequest(BaseModel):
    """Several questions, which are answered together."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"questions": [{"question": "What is the capital of Fiji?"}]}]}
    )

    questions: Annotated[list[AskRequest], Field(min_length=1, max_length=BATCH)]


class FeedbackRequest(BaseModel):
    """A verdict on an answer.

    answer_id: came with the answer.  verdict: `up`, or `down`.  correction: the right answers, with `down`.
    """

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"answer_id": "3q2-7wAAAAAAAAAAAAAAAAAA", "verdict": "down",
                                         "correction": ["Sucre"]}]},
    )  # fmt: skip

    answer_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{16,64}$")]
    verdict: Literal["up", "down"]
    correction: (
        Annotated[list[Annotated[str, Field(min_length=1, max_length=500)]], Field(min_length=1, max_length=1000)]
        | None
    ) = None

    def feedback(self) -> Feedback:
        """The same as it is kept."""
        return Feedback(self.answer_id, self.verdict, None if self.correction is None else tuple(self.correction))


class FeedbackReply(BaseModel):
    """id: the number of the verdict in `kgqa feedback list`."""

    id: int


class Health(BaseModel):
    """status: `alive`."""

    status: Literal["alive"] = "alive"


class ChatMessage(BaseModel):
    """A message of OpenAI's chat protocol; content in parts is joined."""

    role: str
    content: str | list[dict[str, Any]] | None = None

    @property
    def text(self) -> str:
        """The text of the message."""
        if isinstance(self.content, list):
            return "\n".join(str(part.get("text", "")) for part in self.content if part.get("type") == "text")
        return self.content or ""


class StreamOptions(BaseModel):
    """include_usage: whether the last chunk counts tokens."""

    include_usage: bool = False


class ChatRequest(BaseModel):
    """A request of OpenAI's chat protocol; what it says of sampling has no meaning here and is not read.

    messages: the last one by the user is the question, the turns before it the dialogue, of which the latest are read;
    system messages are not.
    topics, knowledge, min_confidence: as in `POST /ask`.
    """

    model_config = ConfigDict(
        extra="ignore",
        json_schema_extra={"examples": [{"model": "kgqa",
                                         "messages": [{"role": "user", "content": "What is the capital of Fiji?"}]}]},
    )  # fmt: skip

    messages: Annotated[list[ChatMessage], Field(min_length=1)]
    model: str = ""
    stream: bool = False
    stream_options: StreamOptions | None = None
    n: Annotated[int, Field(ge=1, le=1)] = 1
    topics: list[str] = []
    knowledge: Name | None = None
    min_confidence: Confidence | None = None


# what the server replies with, for its schema
BatchReply: Any = create_model("BatchReply", answers=(list[AskReply], ...), rejects=(list[int], ...))
_Text: Any = create_model("ChatText", role=(str, ...), content=(str, ...), refusal=(str | None, ...))
_Choice: Any = create_model("ChatChoice", index=(int, ...), message=(_Text, ...), finish_reason=(str, ...))
_HEAD: dict[str, Any] = {"id": (str, ...), "object": (str, ...), "created": (int, ...)}
_CHAT: dict[str, Any] = {"model": (str, ...), "choices": (list[_Choice], ...), "usage": (dict[str, int], ...)}
ChatReply: Any = create_model("ChatReply", **_HEAD | _CHAT, kgqa=(AskReply, ...))
_Card: Any = create_model("ModelCard", **_HEAD, owned_by=(str, ...), run=(str, ...))
ModelList: Any = create_model("ModelList", object=(str, ...), data=(list[_Card], ...))
_STATE: dict[str, Any] = {name: (str, None) for name in ("run", "graph", "fault", "proof")}
Ready: Any = create_model("Ready", ready=(bool, ...), swaps=(int, None), **_STATE)
_Detail: Any = create_model("ErrorDetail", message=(str, ...), type=(str, ...), code=(int | str, ...))
ErrorReply: Any = create_model("ErrorReply", error=(_Detail, ...))


def served_json(served: Served) -> dict[str, Any]:
    """An answer as `kgqa ask --json` prints it, with the run that gave it and its seconds."""
    return {
        **served.answer.to_dict(),
        "run": served.run,
        "seconds": round(served.waited + served.answered, 4),
        "stages": {"waiting": round(served.waited, 4), **served.stages},
        "batch": served.batch,
        **({"trace": served.trace} if served.trace else {}),
        **({"answer_id": served.answer_id} if served.answer_id else {}),
    }


def issued(served: Served, earlier_turns: int = 0) -> IssuedAnswer:
    """What is remembered of an answer after so many turns of a dialogue, so that feedback can name it.

    Topics and form only where the question itself names the topics: who confirms feedback does not see what others,
    which the client gave or earlier turns named, would teach.
    """
    answer, topics, form = served.answer, [topic.key for topic in served.answer.topics], served.answer.form
    if answer.understood or not all(_names(answer.question, topic) for topic in answer.topics):
        topics, form = [], None
    return IssuedAnswer(answer.question, topics, answer.listed, form, served.run, served.trace, earlier_turns)


def _names(question: str, topic: AnswerTopic) -> bool:
    if topic.mention is not None:
        return topic.mention.casefold() in question.casefold()
    return bool(contains(GoldAnswers(((topic.name,),)), question))
