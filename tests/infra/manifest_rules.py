"""What kubernetes-validate does not know of our objects: whether they fit together.  Faults are sentences."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from typing import Any

import kubernetes_validate

from tests.infra.kustomize import Manifest, pod_of
from tests.infra.places import ADDRESS, PINNED

VERSIONS = ("1.32", "1.37")
GPU = "nvidia.com/gpu"


def problems(objects: list[Manifest], secrets: dict[str, set[str]]) -> list[str]:
    """All faults.  secrets: the names and keys that the cluster's owner is told to make."""
    found = [*_schema(objects), *_names(objects)]
    if found:
        return found
    for check in (_selectors, _ports, _references, _addresses, _policies, _shared_claims):
        found += check(objects)
    for item in objects:
        if item["kind"] == "Secret":
            found.append(f"{_title(item)}: a Secret must not lie in the repository")
        template = pod_of(item)
        if template:
            found += [f"{_title(item)}: {text}" for text in [*_secrets(template, secrets), *_pod(item, template)]]
    return found


def _schema(objects: list[Manifest]) -> Iterator[str]:
    for item in objects:
        for version in VERSIONS:
            fault = _schema_fault(json.dumps(item), version)
            if fault:
                yield f"{_title(item)}: {fault}"


@functools.cache
def _schema_fault(item: str, version: str) -> str:
    try:
        kubernetes_validate.validate(json.loads(item), version, strict=True)
    except kubernetes_validate.ValidationError as fault:
        road = "/".join(str(step) for step in fault.absolute_path)
        return f"{road}: {fault.message} (Kubernetes {version})"
    except kubernetes_validate.SchemaNotFoundError as fault:
        return str(fault.message)
    return ""


def _names(objects: list[Manifest]) -> Iterator[str]:
    seen: set[tuple[str, str]] = set()
    for item in objects:
        name = (item["kind"], item["metadata"]["name"])
        if name in seen:
            yield f"{_title(item)} is there twice"
        seen.add(name)
        if item["kind"] != "Namespace" and item["metadata"].get("namespace") != "kgqa":
            yield f"{_title(item)} is not in the namespace kgqa"


def _selectors(objects: list[Manifest]) -> Iterator[str]:
    for item in objects:
        template = pod_of(item)
        if template and "selector" in item["spec"]:
            if not _fits(template, item["spec"]["selector"]):
                yield f"{_title(item)}: its selector does not fit its own pods"
            others = [other for other in _workloads(objects) if other is not item]
            if any(_fits(pod_of(other) or {}, item["spec"]["selector"]) for other in others):
                yield f"{_title(item)}: its selector fits the pods of another workload too"
        if item["kind"] == "Service" and not _selected(objects, {"matchLabels": item["spec"]["selector"]}):
            yield f"{_title(item)}: its selector fits no pod"
        if item["kind"] == "StatefulSet" and not _find(objects, "Service", item["spec"]["serviceName"]):
            yield f"{_title(item)}: its Service {item['spec']['serviceName']} does not exist"


def _ports(objects: list[Manifest]) -> Iterator[str]:
    for item in objects:
        if item["kind"] == "Service":
            if item["spec"].get("type") != "ClusterIP":
                yield f"{_title(item)}: a Service must be of type ClusterIP"
            for workload in _selected(objects, {"matchLabels": item["spec"]["selector"]}):
                for port in item["spec"]["ports"]:
                    if port.get("targetPort", port["port"]) not in _open(workload):
                        yield f"{_title(item)}: its target port {port['targetPort']} is not open in {_title(workload)}"
        for container in _containers(item):
            for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                port = container.get(probe, {}).get("httpGet", {}).get("port")
                if port is not None and port not in _open(item):
                    yield f"{_title(item)}: its {probe} asks the port {port}, which is not open"


def _references(objects: list[Manifest]) -> Iterator[str]:
    for item in _workloads(objects):
        spec = (pod_of(item) or {})["spec"]
        volumes = {volume["name"]: volume for volume in spec.get("volumes", [])}
        volumes |= {claim["metadata"]["name"]: {} for claim in item["spec"].get("volumeClaimTemplates", [])}
        for volume in volumes.values():
            claim = volume.get("persistentVolumeClaim", {}).get("claimName")
            if claim and not _find(objects, "PersistentVolumeClaim", claim):
                yield f"{_title(item)}: the claim {claim} does not exist"
            config = volume.get("configMap", {}).get("name")
            if config and not _find(objects, "ConfigMap", config):
                yield f"{_title(item)}: the ConfigMap {config} does not exist"
        mounted = {mount["name"] for container in _containers(item) for mount in container.get("volumeMounts", [])}
        yield from (f"{_title(item)}: mounts {name}, which is no volume" for name in sorted(mounted - set(volumes)))
        yield from (f"{_title(item)}: the volume {name} is not mounted" for name in sorted(set(volumes) - mounted))
        for container in _containers(item):
            for source in container.get("envFrom", []):
                if not _find(objects, "ConfigMap", source["configMapRef"]["name"]):
                    yield f"{_title(item)}: the ConfigMap {source['configMapRef']['name']} does not exist"
            for ref in _values(container, "configMapKeyRef"):
                config_map = _find(objects, "ConfigMap", ref["name"])
                if not config_map:
                    yield f"{_title(item)}: the ConfigMap {ref['name']} does not exist"
                elif ref["key"] not in config_map["data"] and not ref.get("optional"):
                    yield f"{_title(item)}: the ConfigMap {ref['name']} has no key {ref['key']}"


def _secrets(template: Manifest, secrets: dict[str, set[str]]) -> Iterator[str]:
    for container in template["spec"]["containers"]:
        for ref in _values(container, "secretKeyRef"):
            if ref["key"] not in secrets.get(ref["name"], set()):
                yield f"the key {ref['key']} of Secret {ref['name']} is not among those that README tells to make"


def _asked(objects: list[Manifest], item: Manifest) -> set[tuple[str, int]]:
    """Services and ports that a workload is told to speak to."""
    texts: list[str] = []
    for container in _containers(item):
        values = {entry["name"]: entry.get("value", "") for entry in container.get("env", [])}
        texts += values.values()
        if "PREFECT_SERVER_DATABASE_HOST" in values:
            texts.append(f"//{values['PREFECT_SERVER_DATABASE_HOST']}:{values['PREFECT_SERVER_DATABASE_PORT']}")
        for source in container.get("envFrom", []):
            config_map = _find(objects, "ConfigMap", source["configMapRef"]["name"]) or {"data": {}}
            texts += config_map["data"].values()
    pairs = {(host, int(port)) for text in texts for host, port in ADDRESS.findall(text)}
    return {pair for pair in pairs if pair[0] != "localhost"}


def _addresses(objects: list[Manifest]) -> Iterator[str]:
    for item in _workloads(objects):
        for host, port in sorted(_asked(objects, item)):
            service = _find(objects, "Service", host)
            if not service or port not in {entry["port"] for entry in service["spec"]["ports"]}:
                yield f"{_title(item)}: is sent to {host}:{port}, which no Service offers"


def _policies(objects: list[Manifest]) -> Iterator[str]:
    policies = [item for item in objects if item["kind"] == "NetworkPolicy"]
    if not any(item["spec"]["podSelector"] == {} and not item["spec"].get("ingress") for item in policies):
        yield "no NetworkPolicy closes what is not named"
    allowed: set[tuple[str, str, int]] = set()
    for policy in policies:
        targets = _selected(objects, policy["spec"]["podSelector"])
        if not targets:
            yield f"{_title(policy)}: its selector fits no pod"
        for rule in policy["spec"].get("ingress", []):
            sources = [item for peer in rule["from"] for item in _selected(objects, peer.get("podSelector", {}))]
            if not sources:
                yield f"{_title(policy)}: lets nobody in"
            for port in rule["ports"]:
                if not any(port["port"] in _open(target) for target in targets):
                    yield f"{_title(policy)}: the port {port['port']} is open in none of its pods"
                allowed |= {(_name(a), _name(b), port["port"]) for a in sources for b in targets}
    for item in _workloads(objects):
        for host, port in sorted(_asked(objects, item)):
            service = _find(objects, "Service", host)
            for target in _selected(objects, {"matchLabels": service["spec"]["selector"]}) if service else []:
                if (_name(item), _name(target), port) not in allowed:
                    yield f"{_title(item)}: no NetworkPolicy lets it reach {host}:{port}"


def _shared_claims(objects: list[Manifest]) -> Iterator[str]:
    for claim in (item for item in objects if item["kind"] == "PersistentVolumeClaim"):
        users = [
            item for item in _workloads(objects) for ref in _values(item, "persistentVolumeClaim")
            if ref["claimName"] == _name(claim)
        ]  # fmt: skip
        if not users:
            yield f"{_title(claim)}: nobody uses it"
        if len(users) > 1 and claim["spec"]["accessModes"] != ["ReadWriteMany"]:
            yield f"{_title(claim)}: {len(users)} workloads share it, so it must be ReadWriteMany"


def _pod(item: Manifest, template: Manifest) -> Iterator[str]:
    spec = template["spec"]
    security = spec.get("securityContext", {})
    if not security.get("runAsNonRoot") or not security.get("runAsUser"):
        yield "must not run as root"
    if security.get("seccompProfile") != {"type": "RuntimeDefault"}:
        yield "needs the seccomp profile RuntimeDefault"
    if spec.get("automountServiceAccountToken") is not False:
        yield "must not get a service account token"
    if spec.get("enableServiceLinks") is not False and _name(item) != "postgres":
        yield "needs enableServiceLinks: false, or the Services' variables are taken for settings"
    if any(spec.get(key) for key in ("hostNetwork", "hostPID", "hostIPC")) or list(_values(spec, "hostPath")):
        yield "must not share anything with its node"
    wants_gpu = any(GPU in container["resources"].get("limits", {}) for container in spec["containers"])
    if wants_gpu != (GPU in {entry["key"] for entry in spec.get("tolerations", [])}) or wants_gpu != bool(
        spec.get("nodeSelector")
    ):
        yield "a GPU limit, a toleration and a node selector go together"
    if wants_gpu != (_name(item) in ("worker-gpu", "vllm")):
        yield "a GPU is for worker-gpu and vllm"
    for container in spec["containers"]:
        yield from _container(item, container)


def _container(item: Manifest, container: Manifest) -> Iterator[str]:
    security = container.get("securityContext", {})
    if security.get("allowPrivilegeEscalation") is not False or security.get("privileged"):
        yield "must not gain privileges"
    if security.get("capabilities", {}).get("drop") != ["ALL"] or security["capabilities"].get("add"):
        yield "must drop all capabilities"
    if not security.get("readOnlyRootFilesystem"):
        yield "needs a read-only root"
    if "/tmp" not in {mount["mountPath"] for mount in container.get("volumeMounts", [])}:
        yield "has a read-only root and no /tmp"
    if not PINNED.match(container["image"]):
        yield f"the image {container['image']} is not pinned to a version"
    if not {"cpu", "memory"} <= set(container["resources"].get("requests", {})):
        yield "requests no cpu or no memory"
    if "memory" not in container["resources"].get("limits", {}):
        yield "has no limit of memory"
    wanted = {"startupProbe", "livenessProbe"} if item["kind"] != "Job" else set()
    if _name(item) in ("prefect", "mlflow", "postgres", "vllm"):
        wanted.add("readinessProbe")
    yield from (f"has no {probe}" for probe in sorted(wanted - set(container)))


def _title(item: Manifest) -> str:
    return f"{item.get('kind')}/{item['metadata']['name']}"


def _name(item: Manifest) -> str:
    return str(item["metadata"]["name"])


def _find(objects: list[Manifest], kind: str, name: str) -> Manifest | None:
    return next((item for item in objects if item["kind"] == kind and _name(item) == name), None)


def _workloads(objects: list[Manifest]) -> list[Manifest]:
    return [item for item in objects if pod_of(item)]


def _containers(item: Manifest) -> list[Manifest]:
    template = pod_of(item)
    return template["spec"]["containers"] if template else []


def _open(item: Manifest) -> set[Any]:
    ports = [port for container in _containers(item) for port in container.get("ports", [])]
    return {port["name"] for port in ports} | {port["containerPort"] for port in ports}


def _fits(template: Manifest, selector: Manifest) -> bool:
    labels = template["metadata"].get("labels", {})
    exact = all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())
    return exact and all(labels.get(rule["key"]) in rule["values"] for rule in selector.get("matchExpressions", []))


def _selected(objects: list[Manifest], selector: Manifest) -> list[Manifest]:
    return [item for item in _workloads(objects) if _fits(pod_of(item) or {}, selector)]


def _values(tree: Any, key: str) -> Iterator[Any]:
    if isinstance(tree, dict):
        for name, value in tree.items():
            if name == key:
                yield value
            yield from _values(value, key)
    elif isinstance(tree, list):
        for value in tree:
            yield from _values(value, key)
