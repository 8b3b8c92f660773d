"""The OpenAPI description: valid, and what the server replies is what it says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate
from starlette.testclient import TestClient

from kgqa_core.errors import EndpointError
from kgqa_core.serving.feedback import FeedbackStore
from kgqa_core.serving.graph_view import GraphView
from kgqa_core.serving.http import HttpOptions, create_app
from kgqa_core.serving.service import Service
from kgqa_core.types import Question
from tests.support.served import EchoSource, EchoSystem, echo

TOKEN = "a-token-of-this-test"


def _reply(question: Question) -> str:
    if question.text == "down":
        raise EndpointError("the endpoint is down")
    return echo(question)


@pytest.fixture(scope="module")
def client(view: GraphView, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    source = EchoSource(one=EchoSystem(reply=_reply))
    source.looked_into = view
    app = create_app(
        Service(source), HttpOptions(token=TOKEN, body_kb=8), FeedbackStore(tmp_path_factory.mktemp("serve"))
    )  # type: ignore[arg-type]
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with TestClient(app, base_url="http://localhost", headers=headers, raise_server_exceptions=False) as opened:
        yield opened


@pytest.fixture(scope="module")
def schema(client: TestClient) -> dict[str, Any]:
    found: dict[str, Any] = client.get("/openapi.json").json()
    return found


def test_the_description_is_valid_and_names_every_operation_once(schema: dict[str, Any]) -> None:
    validate(schema)
    operations = [operation for path in schema["paths"].values() for operation in path.values()]
    names = [operation["operationId"] for operation in operations]
    assert {"ask", "ask_batch", "chat_completion", "search_entities", "query", "give_feedback"} < set(names)
    assert len(names) == len(set(names)) and all(name.isidentifier() for name in names)
    assert {tag for one in operations for tag in one["tags"]} == {"answers", "graph", "server"}
    replies = {one["operationId"]: reply["content"].get("application/json", {}) for one in operations
               for code, reply in one["responses"].items() if code[0] == "2"}  # fmt: skip
    untyped = [name for name, one in replies.items() if one and "$ref" not in one["schema"]]
    assert untyped == [], "a client that is generated has a class for every reply"
    assert schema["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    assert schema["security"] == [{"token": []}] and schema["paths"]["/ready"]["get"]["security"] == []


CASES: list[tuple[int, str, str, Any]] = [
    (200, "POST", "/ask", {"question": "a", "topics": ["Norland"]}),
    (400, "POST", "/ask", {"question": "a", "topics": ["nowhere"]}),
    (422, "POST", "/ask", {"question": "a", "min_confidence": 2}),
    (413, "POST", "/ask", {"question": "a" * 9000}),
    (502, "POST", "/ask", {"question": "down"}),
    (200, "POST", "/ask/batch", {"questions": [{"question": "a"}, {"question": "b", "topics": ["nowhere"]}]}),
    (200, "POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}]}),
    (404, "POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}], "model": "other"}),
    (200, "GET", "/v1/models", None),
    (200, "GET", "/entities?q=norl", None),
    (422, "GET", "/entities?q=norl&limit=0", None),
    (200, "GET", "/entities/Norland", None),
    (400, "GET", "/entities/Nowhere", None),
    (200, "GET", "/entities/Norland/neighbourhood", None),
    (200, "GET", "/paths?start=Norland City&end=Sudland", None),
    (200, "POST", "/query", {"form": "(JOIN (R capital) Norland)"}),
    (200, "POST", "/query", {"form": "(COUNT (TYPE country))"}),
    (400, "POST", "/query", {"form": "(JOIN"}),
    (200, "POST", "/query", {"form": "SELECT (COUNT(?x) AS ?n) WHERE { ?x a <http://x/country> }"}),
    (200, "POST", "/sql", {"statement": "SELECT id, key FROM entities", "limit": 2}),
    (400, "POST", "/sql", {"statement": "DROP TABLE triples"}),
    (200, "GET", "/names", None),
    (403, "POST", "/names", {"lines": "types: {country: [land]}"}),
    (404, "POST", "/feedback", {"answer_id": "a" * 24, "verdict": "up"}),
    (200, "GET", "/health", None),
    (200, "GET", "/ready?challenge=x", None),
]


@pytest.mark.parametrize(("status", "method", "path", "body"), CASES)
def test_a_reply_has_the_schema_that_is_described(
    client: TestClient, schema: dict[str, Any], status: int, method: str, path: str, body: Any
) -> None:
    reply = client.request(method, path, json=body)
    assert reply.status_code == status, reply.text
    plain = path.partition("?")[0].replace("/Norland", "/{name}").replace("/Nowhere", "/{name}")
    described = schema["paths"][plain][method.lower()]["responses"][str(status)]["content"]["application/json"]
    Draft202012Validator({**described["schema"], "components": schema["components"]}).validate(reply.json())


def test_a_verdict_and_a_request_without_the_token_have_their_schemas(
    client: TestClient, schema: dict[str, Any]
) -> None:
    answer = client.post("/ask", json={"question": "a"}).json()
    given = client.post("/feedback", json={"answer_id": answer["answer_id"], "verdict": "up"})
    refused = client.get("/v1/models", headers={"Authorization": ""})
    cases = ((given, 201, "/feedback", "post"), (refused, 401, "/v1/models", "get"))
    for reply, status, path, method in cases:
        described = schema["paths"][path][method]["responses"][str(status)]["content"]["application/json"]["schema"]
        Draft202012Validator({**described, "components": schema["components"]}).validate(reply.json())


def test_every_field_of_an_answer_is_described(client: TestClient, schema: dict[str, Any], tmp_path: Path) -> None:
    known = schema["components"]["schemas"]["AskReply"]["properties"]
    assert client.post("/ask", json={"question": "a"}).json().keys() <= known.keys()


def test_the_page_of_requests_needs_no_script_no_token_and_no_other_host(
    client: TestClient, schema: dict[str, Any]
) -> None:
    reply = client.get("/docs", headers={"Authorization": ""})
    assert reply.status_code == 200 and "default-src 'none'" in reply.headers["content-security-policy"]
    assert "<script" not in reply.text and "https://" not in reply.text
    assert "&#x27;http://localhost/ask&#x27;" in reply.text, "the address by which the page was reached"
    assert all(f"<code>{method.upper()} {path}</code>" in reply.text
               for path, own in schema["paths"].items() for method in own)  # fmt: skip
    assert reply.text.count("Bearer $KGQA_SERVE_TOKEN") == sum(map(len, schema["paths"].values()))
    assert client.get("/openapi.json", headers={"Authorization": ""}).status_code == 200
