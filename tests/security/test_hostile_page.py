"""A hostile web page and a stranger's process, against the servers of `kgqa ui` and a run's temporary server.

Requests with forged headers need no browser.  The page is opened in Chromium that is logged in to both UIs: from
another port, from another name of loopback, and from a name that was rebound to the address of the servers.
"""

from __future__ import annotations

import base64
import http.client
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from tasks.servers import login
from tests.support.browser import NO_CHROMIUM, Browser, chromium
from tests.support.command import closed_port, environment, kgqa, run_python
from tests.support.prefect_server import LOGIN, shared_server
from tests.support.toy import write_graph, write_questions

SECRET = "a-secret-in-plain-text"
ATTACKER, REBOUND = "attacker.localhost", "rebound.test"


class Ui(NamedTuple):
    """Both servers of a running `kgqa ui`, and their login."""

    prefect: str
    mlflow: str
    auth_string: str
    home: Path


def send(
    address: str, path: str, body: Any = None, auth_string: str | None = None, **headers: str
) -> tuple[int, bytes, dict[str, str]]:
    """Status, body and headers of a request; with a body it is a POST of JSON."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    given = {"Host": parts.netloc, "Content-Type": "application/json"}
    given |= {key.replace("_", "-"): value for key, value in headers.items()}
    if auth_string is not None:
        given["Authorization"] = "Basic " + base64.b64encode(auth_string.encode()).decode()
    try:
        connection.request("GET" if body is None else "POST", path, None if body is None else json.dumps(body), given)
        reply = connection.getresponse()
        return reply.status, reply.read(), {key.lower(): value for key, value in reply.getheaders()}
    finally:
        connection.close()


def as_client(api: str, auth_string: str, path: str, body: Any = None) -> Any:
    """JSON of an honest client's request to Prefect, with login and CSRF token."""
    base = urlsplit(api)
    server = f"{base.scheme}://{base.netloc}"
    token = json.loads(send(server, "/api/csrf-token?client=test", auth_string=auth_string)[1])["token"]
    own = {"Prefect-Csrf-Token": token, "Prefect-Csrf-Client": "test"}
    status, text, _ = send(server, path, body, auth_string, **own)
    assert status in (200, 201), (path, status, text)
    return json.loads(text)


@pytest.fixture(scope="module")
def ui(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ui]:
    """A running `kgqa ui` of a home with a Secret block, and a finished run in both."""
    home = tmp_path_factory.mktemp("ui")
    ports = [closed_port(), closed_port()]
    words = ["-m", "flows.cli", "ui", "--home", str(home)]
    words += ["--prefect-port", str(ports[0]), "--mlflow-port", str(ports[1])]
    process = subprocess.Popen([sys.executable, *words], env=environment(), stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None and "Prefect UI" in process.stdout.readline()
        served = Ui(*(f"http://127.0.0.1:{port}" for port in ports), login.read_auth_string(home) or "none:none", home)
        fill(served)
        yield served
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def fill(ui: Ui) -> None:
    kinds = as_client(
        ui.prefect, ui.auth_string, "/api/block_types/filter", {"block_types": {"slug": {"any_": ["secret"]}}}
    )
    schema = as_client(
        ui.prefect, ui.auth_string, "/api/block_schemas/filter",
        {"block_schemas": {"block_type_id": {"any_": [kinds[0]["id"]]}}},
    )[0]  # fmt: skip
    block = {"name": "key", "block_type_id": kinds[0]["id"], "block_schema_id": schema["id"], "data": {"value": SECRET}}
    as_client(ui.prefect, ui.auth_string, "/api/block_documents/", block)
    flow = as_client(ui.prefect, ui.auth_string, "/api/flows/", {"name": "kgqa-pipeline"})
    run = {"flow_id": flow["id"], "name": "atlas/questions", "state": {"type": "COMPLETED"}}
    as_client(ui.prefect, ui.auth_string, "/api/flow_runs/", run)
    path = "/api/2.0/mlflow/experiments/create"
    made = send(ui.mlflow, path, {"name": "kgqa"}, ui.auth_string)[1]
    run = {"experiment_id": json.loads(made)["experiment_id"], "run_name": "pipeline atlas"}
    assert send(ui.mlflow, "/api/2.0/mlflow/runs/create", run, ui.auth_string)[0] == 200


ATTACKS = {
    "a flow": ("prefect", "/api/flows/", {"name": "evil"}),
    "a deployment": (
        "prefect",
        "/api/deployments/",
        {"name": "evil", "flow_id": "0" * 32, "job_variables": {"command": "id"}},
    ),
    "a flow run": ("prefect", "/api/flow_runs/", {"flow_id": "0" * 32, "name": "evil"}),
    "secrets": ("prefect", "/api/block_documents/filter", {"include_secrets": True}),
    "Prefect's runs": ("prefect", "/api/flow_runs/filter", {}),
    "an experiment": ("mlflow", "/api/2.0/mlflow/experiments/create", {"name": "evil"}),
    "another way to experiments": ("mlflow", "/ajax-api/2.0/mlflow/experiments/create", {"name": "evil"}),
    "MLflow's runs": ("mlflow", "/api/2.0/mlflow/experiments/search", {"max_results": 9}),
}  # fmt: skip
FORGED = {
    "another site": {"Origin": "http://attacker.example"},
    "another port": {"Origin": "http://127.0.0.1:9999", "Sec_Fetch_Site": "same-site"},
    "a file": {"Origin": "null"},
    "no origin is named": {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "no-cors"},
    "a rebound name": {"Host": "attacker.example"},
}


@pytest.mark.slow
@pytest.mark.parametrize("attack", ATTACKS)
def test_no_page_gets_anything_by_forged_headers_even_with_the_login(ui: Ui, attack: str) -> None:
    name, path, body = ATTACKS[attack]
    address = getattr(ui, name)
    for who, headers in FORGED.items():
        port = urlsplit(address).port
        given = {key: f"{value}:{port}" if key == "Host" else value for key, value in headers.items()}
        for auth_string in (None, ui.auth_string):
            status, text, reply = send(address, path, body, auth_string, **given)
            assert status == 403, (who, status, text[:300])
            assert "access-control-allow-origin" not in reply and SECRET.encode() not in text
    assert nothing_evil(ui)


@pytest.mark.slow
@pytest.mark.parametrize("attack", ATTACKS)
def test_no_process_gets_anything_without_the_login(ui: Ui, attack: str) -> None:
    name, path, body = ATTACKS[attack]
    refused = (401, 403)  # Prefect looks for its CSRF token first
    for auth_string in (None, "kgqa:", "kgqa:wrong", ":"):
        status, text, _ = send(getattr(ui, name), path, body, auth_string)
        assert status in refused and SECRET.encode() not in text
    assert send(getattr(ui, name), path, auth_string=None)[0] == 401
    assert nothing_evil(ui)


@pytest.mark.slow
def test_a_websocket_of_another_origin_is_refused(ui: Ui) -> None:
    from websockets.exceptions import InvalidStatus
    from websockets.sync.client import connect

    for path in ("/api/events/in", "/api/events/out", "/api/logs/out"):
        address = f"{ui.prefect.replace('http', 'ws', 1)}{path}"
        with pytest.raises(InvalidStatus) as refused:
            connect(address, origin="http://attacker.example", subprotocols=["prefect"], proxy=None)  # type: ignore[arg-type, list-item]
        assert refused.value.response.status_code == 403


def test_the_temporary_server_of_a_run_is_closed() -> None:
    address = shared_server().removesuffix("/api")
    for attack in ("a flow", "secrets", "Prefect's runs"):
        _, path, body = ATTACKS[attack]
        assert send(address, path, body, LOGIN, Origin="http://attacker.example")[0] == 403
        assert send(address, path, body, LOGIN, Host=f"{REBOUND}:{urlsplit(address).port}")[0] == 403
        assert send(address, path, body)[0] in (401, 403)
        assert send(address, path, body, login.make_auth_string())[0] in (401, 403), (
            "each server has a login of its own"
        )
    assert send(address, "/api/admin/settings")[0] == 401
    assert send(address, "/api/admin/settings", auth_string=LOGIN)[0] == 200


@pytest.mark.slow
def test_commands_of_the_home_log_in_by_themselves(ui: Ui, tmp_path: Path) -> None:
    (tmp_path / "dump.tsv").write_text("a\tknows\tb\n")
    words = ["-m", "flows.cli", "kg", "build", tmp_path / "dump.tsv", "--out", tmp_path / "graph", "--emit"]
    home = {"PREFECT_API_URL": f"{ui.prefect}/api", "KGQA_HOME": str(ui.home)}
    reply = run_python(words, env=home, cwd=tmp_path)
    assert reply.code == 0 and ui.auth_string.partition(":")[2] not in reply.out + reply.err, reply.err
    words[-2] = tmp_path / "graph2"
    refused = run_python(words, env=home | {"KGQA_HOME": str(tmp_path / "other")}, cwd=tmp_path)
    assert refused.code == 1 and "401" in refused.err, refused.err


@pytest.mark.slow
def test_a_run_without_the_login_says_which_is_missing(ui: Ui, tmp_path: Path) -> None:
    write_questions(tmp_path / "questions.jsonl", write_graph(tmp_path / "graph.tsv", 400), 40)
    words = [
        "run",
        "--answerer",
        "builtin",
        "--kg",
        tmp_path / "graph.tsv",
        "--questions",
        tmp_path / "questions.jsonl",
        "--home",
        tmp_path,
    ]
    outcome = kgqa(*words, env={"PREFECT_API_URL": f"{ui.prefect}/api"})
    assert outcome.code == 2 and "Traceback" not in outcome.err, outcome.err[-2000:]
    assert "PREFECT_API_AUTH_STRING" in outcome.err and f"{ui.prefect}/api" in outcome.err


@pytest.fixture(scope="module")
def hostile() -> Iterator[str]:
    """Address of an empty page on a port of its own."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<p>a harmless page</p>")

        def log_message(self, *words: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory, ui: Ui) -> Iterator[Browser]:
    """Chromium whose user has logged in to both UIs."""
    if chromium() is None:
        pytest.skip(NO_CHROMIUM)
    log = tmp_path_factory.mktemp("browser") / "log"
    with Browser(log, names=(ATTACKER, REBOUND)) as running:
        for address, words in ((ui.mlflow, "Experiments"), (ui.prefect, "Dashboard")):
            running.open(f"{address}{login.LOGIN}#{ui.auth_string}", words)
        yield running


ATTACK = """
(async () => {
  const got = {};
  const tries = %s;
  for (const [name, [url, body]] of Object.entries(tries)) {
    for (const [how, options] of Object.entries({
      json: {headers: {"Content-Type": "application/json"}}, simple: {headers: {"Content-Type": "text/plain"}},
      blind: {mode: "no-cors"}, known: {credentials: "include", headers: {"Content-Type": "application/json"}},
    })) {
      try {
        const reply = await fetch(url, {method: "POST", body: JSON.stringify(body), ...options});
        got[name + " " + how] = reply.type + " " + reply.status + " " + await reply.text();
      } catch (fault) { got[name + " " + how] = "refused"; }
    }
  }
  return JSON.stringify(got);
})()
"""


def attack(browser: Browser, ui: Ui, host: str | None = None) -> dict[str, str]:
    """What a page's script gets from either server; host: the name that it calls them by."""
    tries = {}
    for name, (server, path, body) in ATTACKS.items():
        address = getattr(ui, server)
        tries[name] = [(address if host is None else address.replace("127.0.0.1", host)) + path, body]
    got: dict[str, str] = json.loads(browser.run(ATTACK % json.dumps(tries)))
    assert len(got) == 4 * len(ATTACKS)
    return got


def nothing_evil(ui: Ui) -> bool:
    """Whether no attack has left anything."""
    flows = as_client(ui.prefect, ui.auth_string, "/api/flows/filter", {})
    runs = as_client(ui.prefect, ui.auth_string, "/api/flow_runs/filter", {})
    body = {"max_results": 100}
    experiments = json.loads(send(ui.mlflow, "/api/2.0/mlflow/experiments/search", body, ui.auth_string)[1])
    names = [each["name"] for each in (*flows, *runs, *experiments["experiments"])]
    assert "kgqa-pipeline" in names and "kgqa" in names, "the look at the servers sees nothing"
    return "evil" not in names


@pytest.mark.slow
@pytest.mark.parametrize("name", ["127.0.0.1", ATTACKER])
def test_a_page_of_another_origin_gets_and_changes_nothing(browser: Browser, ui: Ui, hostile: str, name: str) -> None:
    browser.open(hostile.replace("127.0.0.1", name), "harmless")
    got = attack(browser, ui)
    answers = {key: value for key, value in got.items() if value != "refused"}
    assert all(key.endswith("blind") and value == "opaque 0 " for key, value in answers.items()), answers
    assert nothing_evil(ui)


@pytest.mark.slow
def test_a_rebound_name_gets_and_changes_nothing(browser: Browser, ui: Ui) -> None:
    for address in (ui.prefect, ui.mlflow):
        browser.open(address.replace("127.0.0.1", REBOUND), "refused", "Host")
        got = attack(browser, ui, REBOUND)
        own = [value for value in got.values() if value.startswith("basic")]
        assert own, "a page may read what its own origin answers"
        assert all(value.startswith("basic 403 refused: ") for value in own), got
        assert all(value in ("refused", "opaque 0 ") for value in got.values() if value not in own), got
    assert nothing_evil(ui)


@pytest.mark.slow
def test_an_image_of_the_uis_is_not_seen_from_another_page(browser: Browser, ui: Ui, hostile: str) -> None:
    image = (
        "new Promise(done => { const seen = new Image(); seen.onload = () => done('seen');"
        " seen.onerror = () => done('refused'); seen.src = %s })"
    )
    script = image % json.dumps(f"{ui.prefect}/ico/favicon-32x32.png")
    browser.open(f"{ui.prefect}/runs", "kgqa-pipeline")
    assert browser.run(script) == "seen"
    browser.open(hostile, "harmless")
    assert browser.run(script) == "refused"


@pytest.mark.slow
def test_both_uis_show_their_runs_after_the_login(browser: Browser, ui: Ui, tmp_path: Path) -> None:
    browser.open(f"{ui.prefect}/runs", "atlas/questions", "kgqa-pipeline")
    browser.picture(tmp_path / "prefect.png", still=0.5)
    browser.open(f"{ui.mlflow}/#/experiments/1", "pipeline atlas")
    assert "workflowType=machine_learning" in browser.run("location.href")
    assert "Ask a question" not in browser.text(), "MLflow's assistant opens when it is clicked"
    browser.picture(tmp_path / "mlflow.png", still=0.5)


@pytest.mark.slow
def test_without_the_login_neither_ui_shows_anything_and_links_ask_for_it(ui: Ui, tmp_path: Path) -> None:
    if chromium() is None:
        pytest.skip(NO_CHROMIUM)
    with Browser(tmp_path / "log") as stranger:
        stranger.open(f"{ui.mlflow}{login.LOGIN}#kgqa:wrong", "This login is not valid here.")
        stranger.open(f"{ui.mlflow}/#/experiments/1/runs?workflowType=machine_learning", "Log in")
        stranger.fill("input", ui.auth_string)
        stranger.click("Log in")
        assert "Model training" in stranger.wait("pipeline atlas"), "a link of a run opens once somebody has logged in"
        stranger.open(f"{ui.prefect}{login.LOGIN}#kgqa:wrong", "This login is not valid here.")
        assert "atlas" not in stranger.open(f"{ui.prefect}/runs", "Login")
