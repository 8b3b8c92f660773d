"""What the logged model makes of a request, and what its reference says of the project."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlflow
import pytest
from mlflow.exceptions import MlflowException
from mlflow.types.responses import ResponsesAgentRequest

from kgqa_core.answering.reply import Answer
from kgqa_core.config import Profile, make_profile
from kgqa_core.store.artifacts import ArtifactRef, Home
from tasks.servers.database import ensure_database
from tasks.tracking import model_reference
from tasks.tracking.model_files import code_files
from tasks.tracking.model_reference import make_reference, requirements
from tasks.tracking.system_agent import SystemAgent, read_request


@pytest.fixture(scope="module", autouse=True)
def no_traces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """MLflow would make a database in the working folder, and trace `predict` into it."""
    uri = f"sqlite:///{tmp_path_factory.mktemp('mlflow') / 'mlflow.db'}"
    ensure_database(uri)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_TRACKING_URI", uri)
        mlflow.tracing.disable()
        yield
        mlflow.tracing.enable()


class Heard:
    """A system that keeps what it is asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.least: float | None = None

    def at_confidence(self, least: float) -> Heard:
        self.least = least
        return self

    def ask(self, *asked: Any) -> Answer:
        self.asked.append(asked)
        return Answer("ask", asked[0], "Suva, Lami", answers=("Suva", "Lami"), operation="none", proof=("(a, b, c)",))


def agent(system: Any) -> SystemAgent:
    found = SystemAgent()
    found._system, found._run = system, "run-a"
    return found


def request(*messages: Any, **custom: Any) -> ResponsesAgentRequest:
    return ResponsesAgentRequest(input=list(messages), custom_inputs=custom or None)


def test_the_last_user_message_is_the_question_and_earlier_ones_the_dialogue() -> None:
    heard = Heard()
    earlier = {
        "type": "message", "id": "answer-1", "role": "assistant",
        "content": [{"type": "output_text", "text": "Suva [1]\n\n[1] (Fiji, capital, Suva)", "annotations": []}],
    }  # fmt: skip
    parts = {"role": "user", "content": [{"type": "input_text", "text": "And its currency?"}]}
    told = request({"role": "system", "content": "Be brief."}, {"role": "user", "content": "Capital of Fiji?"},
                   earlier, parts, topics=["Fiji"], min_confidence=0.25)  # fmt: skip
    reply = agent(heard).predict(told)
    dialogue = (("user", "Capital of Fiji?"), ("agent", "Suva"))
    assert heard.asked == [("And its currency?", ("Fiji",), dialogue)] and heard.least == 0.25
    [item] = reply.output
    assert item.content[0]["text"] == "Suva, Lami [1]\n\n[1] (a, b, c)"
    assert reply.custom_outputs is not None and reply.custom_outputs["run"] == "run-a"
    assert reply.custom_outputs["answer"]["proof"] == ["(a, b, c)"]
    [event] = agent(heard).predict_stream(told)
    assert event.type == "response.output_item.done" and event.item["content"][0]["text"] == item.content[0]["text"]


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (request({"role": "assistant", "content": "Suva"}), "the last message must be the user's"),
        (request({"role": "user", "content": "Who?"}, min_confidence=2), "min_confidence: Input should be less"),
        (request({"role": "user", "content": "Who?"}, topic=["Fiji"]), "topic: Extra inputs are not permitted"),
        (request({"role": "user", "content": "Who?"}, topics="Fiji"), "topics: Input should be a valid list"),
    ],
)
def test_a_request_that_cannot_be_read_is_refused_with_what_it_may_have(told: Any, said: str) -> None:
    with pytest.raises(MlflowException, match=said) as fault:
        agent(Heard()).predict(told)
    assert fault.value.error_code == "INVALID_PARAMETER_VALUE"


def test_a_reference_names_what_the_system_reads_by_place_and_digest_and_nothing_of_the_profile(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    artifacts = {
        "kg": ArtifactRef(kind="kg", path=str(home.root / "artifacts/kg/1"), digest="d1"),
        "scores": ArtifactRef(kind="scores", path=str(home.root / "artifacts/scores/1"), digest="d2"),
        "answers/rigel": ArtifactRef(kind="answers", path=str(home.root / "artifacts/answers/1"), digest="d3"),
        "rigel": ArtifactRef(kind="retriever", path="/elsewhere/rigel", digest="d4"),
    }
    profile = make_profile({"kg": {"name": "g"}, "llm": {"base_url": "http://inside.example/v1"}})
    found = make_reference(home, "run-a", profile, artifacts, "abc123")
    names = {name for name in artifacts if name in found["artifacts"]}
    assert names == {"kg"} | ({"rigel"} & model_reference.SYSTEM_STAGES)
    assert found["artifacts"]["kg"] == {"path": "artifacts/kg/1", "digest": "d1"}
    assert (found["run"], found["graph"], found["git"]) == ("run-a", "g", "abc123")
    assert "inside.example" not in str(found)


def test_requirements_pin_the_packages_that_the_project_names_and_no_path() -> None:
    pinned = dict(line.split("==") for line in requirements(Profile()))
    assert pinned["mlflow"] == importlib.metadata.version("mlflow") and "+" not in pinned["torch"]
    assert not {"kgqa", "pytest", "bm25s"} & pinned.keys()
    passages = make_profile({"answering": {"knowledge": ["rigel/both"]}})
    assert any(line.startswith("bm25s==") for line in requirements(passages))


def test_the_model_holds_the_code_of_the_system_and_none_of_the_command_line_or_the_builders() -> None:
    files = code_files()
    root = Path(model_reference.__file__).parents[2]
    assert all(file == root / name and file.is_file() for name, file in files.items())
    wanted = {
        "tasks/__init__.py", "tasks/tracking/system_agent.py", "tasks/secrets.py", "kgqa_core/system.py",
        "kgqa_core/llm/builtin/weights/model.safetensors", "kgqa_core/symbolic/by_labels/head_start/model.safetensors",
        "kgqa_core/datasets/derived/data/thesaurus.yaml",
    }  # fmt: skip
    assert wanted <= files.keys()
    assert not [name for name in files if name.startswith(("flows/", "kgqa_core/builders/", "kgqa_core/report/"))]
    assert not [name for name in files if "__pycache__" in name or name.endswith(("atlas.nt.gz", "serving/http.py"))]


def test_options_of_a_request_are_optional() -> None:
    ask = read_request(request({"role": "user", "content": " Who? "}))
    assert (ask.question, ask.topics, ask.dialogue, ask.min_confidence) == ("Who?", (), (), None)
