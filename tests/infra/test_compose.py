"""The compose files are valid, closed to other machines, and hold together."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.infra.compose_rules import MissingVariable, example, fill, problems, variables
from tests.infra.places import INFRA, is_secret, read_faults

FILES = ("compose.yaml", "compose.worker.yaml")


def filled_in() -> dict[str, str]:
    """env.example as its reader leaves it: what was empty has a value."""
    values, _ = example(INFRA / "env.example")
    return {
        name: value or ("home" if name.endswith("HOME") else f"given-{name.lower()}") for name, value in values.items()
    }


def of(name: str) -> dict[str, str]:
    """What a reader fills in for one of the files: on a further machine the servers have an address."""
    elsewhere = {
        "PREFECT_API_URL": "http://10.0.0.5:4200/api",
        "MLFLOW_TRACKING_URI": "http://10.0.0.5:5000",
        "S3_ENDPOINT": "http://10.0.0.5:8333",
    }
    return filled_in() | (elsewhere if name == "compose.worker.yaml" else {})


def has_compose() -> bool:
    """Is there a docker with the compose plugin?"""
    if not shutil.which("docker"):
        return False
    return subprocess.run(["docker", "compose", "version"], capture_output=True, timeout=300).returncode == 0


@pytest.mark.parametrize("name", FILES)
def test_compose_file_has_no_fault(name: str) -> None:
    assert problems((INFRA / name).read_text(encoding="utf-8"), of(name), INFRA) == []


@pytest.mark.skipif(not has_compose(), reason="no docker compose here")
@pytest.mark.parametrize("name", FILES)
def test_docker_compose_accepts_the_file(tmp_path: Path, name: str) -> None:
    env = tmp_path / "env"
    env.write_text("".join(f"{key}={value}\n" for key, value in of(name).items()), encoding="utf-8")
    command = ["docker", "compose", "--env-file", str(env), "-f", str(INFRA / name), "--profile", "*", "config"]
    done = subprocess.run([*command, "--quiet"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_env_example_names_every_variable_and_no_other() -> None:
    values, offered = example(INFRA / "env.example")
    used = {name for file in FILES for name in variables((INFRA / file).read_text(encoding="utf-8"))}
    assert used == set(values) | offered


def test_env_example_holds_no_secret_and_the_defaults_of_the_files() -> None:
    values, offered = example(INFRA / "env.example")
    assert {name: value for name, value in values.items() if is_secret(name) and value} == {}
    assert {name for name in offered if not is_secret(name)} == set()
    text = (INFRA / "compose.yaml").read_text(encoding="utf-8")
    for name, value in values.items():
        if value and f"${{{name}:-" in text:
            assert f"${{{name}:-{value}}}" in text, f"compose.yaml has another default for {name}"


@pytest.mark.parametrize(
    "name",
    [
        "POSTGRES_PASSWORD",
        "PREFECT_DB_PASSWORD",
        "MLFLOW_DB_PASSWORD",
        "PREFECT_PASSWORD",
        "S3_ACCESS_KEY",
        "S3_SECRET_KEY",
    ],
)
@pytest.mark.parametrize("how", ["absent", "empty"])
def test_without_a_password_compose_stops_and_says_which(name: str, how: str) -> None:
    values = filled_in()
    if how == "absent":
        del values[name]
    else:
        values[name] = ""
    with pytest.raises(MissingVariable, match=f"set {name} in infra/.env"):
        fill((INFRA / "compose.yaml").read_text(encoding="utf-8"), values)


def test_ports_are_published_on_loopback_unless_the_variable_says_otherwise() -> None:
    text = (INFRA / "compose.yaml").read_text(encoding="utf-8")

    def published(values: dict[str, str]) -> list[str]:
        return [port for service in fill(text, values)["services"].values() for port in service.get("ports", [])]

    without = {name: value for name, value in filled_in().items() if name != "BIND_ADDRESS"}
    assert published(without) == [f"127.0.0.1:{port}:{port}" for port in (8333, 4200, 5000, 8000)]
    assert published({**without, "BIND_ADDRESS": "10.0.0.5"}) == [
        "10.0.0.5:8333:8333",
        "10.0.0.5:4200:4200",
        "10.0.0.5:5000:5000",
        "10.0.0.5:8000:8000",
    ]


def test_both_servers_run_behind_the_gate_with_a_login_that_workers_have() -> None:
    values = filled_in()
    services = fill((INFRA / "compose.yaml").read_text(encoding="utf-8"), values)["services"]
    for name in ("prefect", "mlflow"):
        assert services[name]["command"][:4] == ["python", "-m", "tasks.servers", name]
        assert services[name]["environment"]["PREFECT_SERVER_API_AUTH_STRING"] == f"admin:{values['PREFECT_PASSWORD']}"
    for name in ("worker-cpu", "worker-gpu"):
        given = services[name]["environment"]
        assert given["PREFECT_API_AUTH_STRING"] == f"admin:{values['PREFECT_PASSWORD']}"
        login = (given["MLFLOW_TRACKING_USERNAME"], given["MLFLOW_TRACKING_PASSWORD"])
        assert login == ("admin", values["PREFECT_PASSWORD"])


def test_the_server_of_answers_is_locked_limited_and_asks_for_a_token() -> None:
    service = fill((INFRA / "compose.yaml").read_text(encoding="utf-8"), filled_in())["services"]["serve"]
    assert service["command"][:4] == ["kgqa", "serve", "--host", "0.0.0.0"], "which needs a token, or it ends"
    assert "KGQA_SERVE_TOKEN" in service["environment"]
    assert service["read_only"] is True and service["cap_drop"] == ["ALL"]
    assert "/ready" in service["healthcheck"]["test"][-1]
    assert set(service["deploy"]["resources"]["limits"]) == {"cpus", "memory"}


def test_the_gpu_pool_takes_one_run_at_a_time_unless_told_otherwise() -> None:
    services = fill((INFRA / "compose.yaml").read_text(encoding="utf-8"), filled_in())["services"]
    assert services["setup"]["environment"]["KGQA_GPU_SLOTS"] == "1"
    command = services["worker-gpu"]["command"]
    assert command[command.index("--limit") + 1] == "1"


def test_workers_of_both_files_are_started_alike() -> None:
    one, other = (fill((INFRA / name).read_text(encoding="utf-8"), filled_in())["services"] for name in FILES)
    for name in ("worker-cpu", "worker-gpu"):
        for key in ("image", "build", "command", "deploy", "shm_size", "tmpfs", "stop_grace_period"):
            assert one[name].get(key) == other[name].get(key), f"{name}: {key}"
        assert set(one[name]["environment"]) == set(other[name]["environment"])


def test_all_services_of_one_image_have_the_same_version() -> None:
    text = "".join((INFRA / name).read_text(encoding="utf-8") for name in FILES)
    version = yaml.safe_load((INFRA / "kubernetes/base/kustomization.yaml").read_text(encoding="utf-8"))["images"]
    for image in version:
        assert f"image: {image['name']}:{image['newTag']}" in text
        assert text.count(f"image: {image['name']}:") == text.count(f"image: {image['name']}:{image['newTag']}")


FAULTS = read_faults("compose")


@pytest.mark.parametrize(("old", "new", "said"), [fault[1:] for fault in FAULTS], ids=[fault[0] for fault in FAULTS])
def test_a_fault_in_the_compose_file_is_found(old: str, new: str, said: str) -> None:
    text = (INFRA / "compose.yaml").read_text(encoding="utf-8")
    assert old in text
    found = problems(text.replace(old, new, 1), filled_in(), INFRA)
    assert any(said in problem for problem in found), found
