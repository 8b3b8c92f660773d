"""As much of `kustomize build` as our kustomizations use, since no library builds them where the binary is not.

Generated ConfigMaps keep their plain names; everything else is as kustomize does it, and a test compares the two.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonpatch
import yaml

Manifest = dict[str, Any]
KNOWN = {
    "apiVersion", "kind", "namespace", "labels", "resources", "configMapGenerator", "images", "replicas", "patches",
}  # fmt: skip
MERGE_KEYS = {"containers": "name", "env": "name", "volumes": "name", "volumeMounts": "mountPath", "ports": "name"}


class KustomizeError(Exception):
    """A kustomization names something that is not there, or that this build does not know."""


def build(folder: Path) -> list[Manifest]:
    """Return every object that the kustomization in `folder` makes.  Raises KustomizeError."""
    text = _documents(folder / "kustomization.yaml", "kustomization")[0]
    if unknown := set(text) - KNOWN:
        raise KustomizeError(f"{folder}: unknown fields {sorted(unknown)}")
    objects: list[Manifest] = []
    for name in text.get("resources", []):
        path = folder / name
        objects += build(path) if path.is_dir() else _documents(path, "resource")
    for generator in text.get("configMapGenerator", []):
        _config_map(objects, folder, generator)
    for patch in text.get("patches", []):
        _patch(objects, folder, patch)
    for wanted in text.get("replicas", []):
        counted = [item for item in objects if "replicas" in item.get("spec", {})]
        for item in _targets(counted, {"name": wanted["name"]}):
            item["spec"]["replicas"] = wanted["count"]
    for item in objects:
        template = pod_of(item)
        for image in text.get("images", []):
            for container in template["spec"]["containers"] if template else []:
                if container["image"].split(":")[0] == image["name"]:
                    container["image"] = f"{image.get('newName', image['name'])}:{image['newTag']}"
        for label in text.get("labels", []):
            inner = [template, *item["spec"].get("volumeClaimTemplates", [])] if template else []
            for part in [item, *(inner if label.get("includeTemplates") else [])]:
                part["metadata"].setdefault("labels", {}).update(label["pairs"])
        if "namespace" in text and item["kind"] != "Namespace":
            item["metadata"]["namespace"] = text["namespace"]
    return objects


def pod_of(item: Manifest) -> Manifest | None:
    """Return the pod template of a workload, None for other objects."""
    return item["spec"].get("template") if item["kind"] in ("Deployment", "StatefulSet", "Job") else None


def _documents(path: Path, what: str) -> list[Manifest]:
    if not path.is_file():
        raise KustomizeError(f"the {what} {path} does not exist")
    return [item for item in yaml.safe_load_all(path.read_text(encoding="utf-8")) if item]


def _targets(objects: list[Manifest], wanted: Manifest) -> list[Manifest]:
    """Return the objects of this kind and name, at least one."""
    names = {"kind": lambda item: item["kind"], "name": lambda item: item["metadata"]["name"]}
    fitting = [item for item in objects if all(names[key](item) == value for key, value in wanted.items())]
    if not fitting:
        raise KustomizeError(f"{wanted} is changed, which does not exist")
    return fitting


def _config_map(objects: list[Manifest], folder: Path, generator: Manifest) -> None:
    data = dict(literal.split("=", 1) for literal in generator.get("literals", []))
    for name in generator.get("files", []):
        if not (folder / name).is_file():
            raise KustomizeError(f"{folder}: the file {name} of ConfigMap {generator['name']} does not exist")
        data[Path(name).name] = (folder / name).read_text(encoding="utf-8")
    head = {"kind": "ConfigMap", "name": generator["name"]}
    if generator.get("behavior") == "merge":
        _targets(objects, head)[0]["data"].update(data)
    else:
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": generator["name"]}, "data": data}
        objects.append(made)


def _patch(objects: list[Manifest], folder: Path, patch: Manifest) -> None:
    changes = _documents(folder / patch["path"], "patch") if "path" in patch else [yaml.safe_load(patch["patch"])]
    for change in changes:
        wanted = patch.get("target") or {"kind": change["kind"], "name": change["metadata"]["name"]}
        for item in _targets(objects, wanted):
            if isinstance(change, list):
                try:
                    jsonpatch.apply_patch(item, change, in_place=True)
                except jsonpatch.JsonPatchException as fault:
                    raise KustomizeError(f"{folder}: {fault}") from fault
            elif change.get("$patch") == "delete":
                objects.remove(item)
            else:
                item.update(_merged(item, change))


def _merged(old: Any, new: Any, name: str = "") -> Any:
    """Return the strategic merge of two trees: lists of named parts are merged by their names, others replaced."""
    if isinstance(old, dict) and isinstance(new, dict):
        merged = {**old, **{key: _merged(old.get(key), value, key) for key, value in new.items()}}
        return {key: value for key, value in merged.items() if value is not None}
    key = MERGE_KEYS.get(name)
    if isinstance(old, list) and isinstance(new, list) and key and all(key in part for part in [*old, *new]):
        parts = {part[key]: part for part in new}
        return [*(_merged(part, parts.pop(part[key], {})) for part in old), *parts.values()]
    return new
