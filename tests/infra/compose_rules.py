"""A compose file with its variables filled in, and what compose-spec does not know of it.  Faults are sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import compose_spec
import yaml

from tests.infra.image_rules import Dockerfile
from tests.infra.places import ADDRESS, PINNED, is_secret

VARIABLE = re.compile(r"\$(?:\$|\{(\w+)(?:(:?[-?])((?:[^{}]|\{[^{}]*\})*))?\}|(\w+))")
ONE_SHOT = ("no", "on-failure")


class MissingVariable(Exception):
    """A variable that must be set is not."""


def example(path: Path) -> tuple[dict[str, str], set[str]]:
    """Variables of an env file with their values, and the names of those that are commented out."""
    values, offered = {}, set()
    for line in path.read_text(encoding="utf-8").splitlines():
        if match := re.fullmatch(r"([A-Z]\w*)=(.*)", line):
            values[match[1]] = match[2]
        elif match := re.fullmatch(r"# ([A-Z]\w*)=", line):
            offered.add(match[1])
    return values, offered


def variables(text: str) -> dict[str, set[str]]:
    """Every variable of the text, and how: `?` must be set, `-` has a default, `null` is handed on."""
    found: dict[str, set[str]] = {}
    for match in VARIABLE.finditer(text):
        name = match[1] or match[4]
        if name:
            found.setdefault(name, set()).add((match[2] or "").strip(":"))
    for service in (yaml.safe_load(text).get("services") or {}).values():
        for name, value in (service.get("environment") or {}).items():
            if value is None:
                found.setdefault(name, set()).add("null")
    return found


def fill(text: str, values: Mapping[str, str]) -> dict[str, Any]:
    """The file with its variables replaced.  Raises MissingVariable with the file's own message."""

    def value(match: re.Match[str]) -> str:
        name, mark, rest = match[1] or match[4], match[2] or "", match[3] or ""
        if not name:
            return "$"
        given = values.get(name)
        if given is not None and (given or not mark.startswith(":")):
            return given
        if mark.endswith("?"):
            raise MissingVariable(f"{name}: {rest}")
        return rest if mark.endswith("-") else ""

    def walk(node: Any) -> Any:
        if isinstance(node, dict):
            return {key: walk(part) for key, part in node.items()}
        if isinstance(node, list):
            return [walk(part) for part in node]
        return VARIABLE.sub(value, node) if isinstance(node, str) else node

    return dict(walk(yaml.safe_load(text)))


def problems(text: str, values: Mapping[str, str], folder: Path) -> list[str]:
    """All faults of a compose file that lies in `folder`, filled in with `values`."""
    try:
        filled = fill(text, values)
    except MissingVariable as fault:
        return [f"a variable is missing: {fault}"]
    try:
        compose_spec.PyCompose.from_yaml(yaml.safe_dump(filled)).validate()
    except ValueError as fault:
        return [f"not a compose file: {fault}"]
    raw = yaml.safe_load(text)
    found = [*_secrets(raw, text), *_volumes(filled, folder), *_networks(filled)]
    for name, service in filled["services"].items():
        checks = (
            _ports(service), _image(service, folder), _needs(service, filled), _hosts(service, filled),
            _safety(service), _life(name, service, filled, folder),
        )  # fmt: skip
        found += [f"{name}: {problem}" for check in checks for problem in check]
    return found


def _secrets(raw: dict[str, Any], text: str) -> Iterator[str]:
    for name, uses in variables(text).items():
        if is_secret(name) and uses - {"?", "null"}:
            yield f"the secret {name} must have no default: ${{{name}:?what it is}}"
    for match in VARIABLE.finditer(text):
        if (match[2] or "").endswith("?") and not (match[1] in (match[3] or "") and "infra/.env" in match[3]):
            yield f"the message for {match[1]} must name it and infra/.env"
    for name, service in raw["services"].items():
        for key, value in (service.get("environment") or {}).items():
            if is_secret(key) and value is not None and not VARIABLE.search(str(value)):
                yield f"{name}: {key} is written into the file"


def _volumes(filled: dict[str, Any], folder: Path) -> Iterator[str]:
    used = set()
    for name, service in filled["services"].items():
        for mount in service.get("volumes", []):
            source = mount.split(":")[0]
            if source.startswith((".", "/", "~")):
                if "docker.sock" in source:
                    yield f"{name}: mounts the docker socket"
                if source.startswith("./postgres") and not (folder / source).is_file():
                    yield f"{name}: {source} does not exist"
            else:
                used.add(source)
                if source not in (filled.get("volumes") or {}):
                    yield f"{name}: the volume {source} is not declared"
    yield from (f"the volume {name} is not used" for name in sorted(set(filled.get("volumes") or {}) - used))


def _networks(filled: dict[str, Any]) -> Iterator[str]:
    declared = set(filled.get("networks") or {})
    used = {network for service in filled["services"].values() for network in service.get("networks", [])}
    yield from (f"the network {name} is not used" for name in sorted(declared - used))
    for name, service in filled["services"].items():
        if declared and "data" in service.get("networks", []) and name.startswith("worker"):
            yield f"{name}: a worker must not reach the database"


def _ports(service: dict[str, Any]) -> Iterator[str]:
    for port in service.get("ports", []):
        if not isinstance(port, str) or not port.startswith("127.0.0.1:"):
            yield f"publishes {port} beyond this machine"


def _image(service: dict[str, Any], folder: Path) -> Iterator[str]:
    if not PINNED.match(service.get("image", "")):
        yield f"the image {service.get('image')} is not pinned to a version"
    build = service.get("build")
    if not build:
        return
    path = folder / build["context"] / build["dockerfile"]
    if not path.is_file():
        yield f"{build['dockerfile']} does not exist"
        return
    dockerfile = Dockerfile(path.read_text(encoding="utf-8"))
    if "target" in build and build["target"] not in dockerfile.stages:
        yield f"{build['dockerfile']} has no stage {build['target']}"
    unknown = set(build.get("args", {})) - dockerfile.arguments
    yield from (f"{build['dockerfile']} has no argument {name}" for name in sorted(unknown))


def _needs(service: dict[str, Any], filled: dict[str, Any]) -> Iterator[str]:
    for name, need in service.get("depends_on", {}).items():
        other = filled["services"].get(name)
        if other is None:
            yield f"depends on {name}, which does not exist"
        elif "profiles" in other and other["profiles"] != service.get("profiles"):
            yield f"depends on {name}, which runs in a profile only"
        elif need["condition"] == "service_healthy" and "test" not in other.get("healthcheck", {}):
            yield f"waits for the health of {name}, which has no health check"
        elif need["condition"] == "service_started":
            yield f"does not wait until {name} is ready"


def _hosts(service: dict[str, Any], filled: dict[str, Any]) -> Iterator[str]:
    environment = service.get("environment") or {}
    texts = [str(value) for value in environment.values()]
    if "PREFECT_SERVER_DATABASE_HOST" in environment:
        texts.append(f"//{environment['PREFECT_SERVER_DATABASE_HOST']}:{environment['PREFECT_SERVER_DATABASE_PORT']}")
    for host, port in sorted({pair for text in texts for pair in ADDRESS.findall(text)} - {("localhost", "*")}):
        other = filled["services"].get(host)
        if other is None:
            yield f"is sent to {host}, which is no service"
        elif not set(other.get("networks", [])) & set(service.get("networks", [])):
            yield f"is sent to {host}, but shares no network with it"
        elif port not in _listens(host, other):
            yield f"is sent to {host}:{port}, which does not listen there"
        elif host not in service.get("depends_on", {}) and not set(service.get("depends_on", {})) & {"setup"}:
            yield f"does not wait for {host}"
        if host in ("prefect", "mlflow") and f"{host}:{port}" not in _allowed(other or {}):
            yield f"is sent to {host}:{port}, which KGQA_ALLOWED_HOSTS refuses"


def _allowed(service: dict[str, Any]) -> list[str]:
    return str((service.get("environment") or {}).get("KGQA_ALLOWED_HOSTS", "")).split(",")


def _listens(name: str, service: dict[str, Any]) -> set[str]:
    if name in ("postgres", "objects"):
        return {"5432" if name == "postgres" else "8333"}
    command = service["command"]
    return {str(command[command.index("--port") + 1])} if "--port" in command else set()


def _safety(service: dict[str, Any]) -> Iterator[str]:
    if "no-new-privileges:true" not in service.get("security_opt", []):
        yield "may gain privileges"
    if service.get("privileged") or service.get("cap_add") or service.get("network_mode") or service.get("pid"):
        yield "asks for the host's privileges"
    if service["image"].startswith("kgqa-") and not (service.get("read_only") and service.get("cap_drop") == ["ALL"]):
        yield "our image needs a read-only root and no capabilities"


def _life(name: str, service: dict[str, Any], filled: dict[str, Any], folder: Path) -> Iterator[str]:
    needs = [other.get("depends_on", {}).get(name, {}) for other in filled["services"].values()]
    if any(need.get("condition") == "service_completed_successfully" for need in needs):
        if service.get("restart") not in ONE_SHOT:
            yield "others wait for its end, but it is restarted"
        return
    if service.get("restart") != "unless-stopped":
        yield "is not started again after a restart of the machine"
    if "max-size" not in service.get("logging", {}).get("options", {}):
        yield "its log grows without end"
    build = service.get("build", {})
    path = folder / build["context"] / build["dockerfile"] if build else None
    in_image = name.startswith("worker") and path and path.is_file() and "HEALTHCHECK" in path.read_text("utf-8")
    if "test" not in service.get("healthcheck", {}) and not in_image:
        yield "has no health check"
