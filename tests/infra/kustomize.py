"""As much of `kustomize build` as our kustomizations use, so that they are checked where the binary is not.

Generated ConfigMaps keep their plain names; everything else is as kustomize does it, and a test compares the two.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import yaml

Manifest = dict[str, Any]
KNOWN = {
    "apiVersion", "kind", "namespace", "labels", "resources", "configMapGenerator", "images", "replicas", "patches",
}  # fmt: skip
MERGE_KEYS = {"containers": "name", "env": "name", "volumes": "name", "volumeMounts": "mountPath", "ports": "name"}
CLUSTER_WIDE = ("Namespace",)


class KustomizeError(Exception):
    """A kustomization names something that is not there, or that this build does not know."""


def build(folder: Path) -> list[Manifest]:
    """Every object that the kustomization in `folder` makes.  Raises KustomizeError."""
    path = folder / "kustomization.yaml"
    if not path.is_file():
        raise KustomizeError(f"no kustomization.yaml in {folder}")
    text = yaml.safe_load(path.read_text(encoding="utf-8"))
    unknown = set(text) - KNOWN
    if unknown:
        raise KustomizeError(f"{path}: unknown fields {sorted(unknown)}")
    objects: list[Manifest] = []
    for name in text.get("resources", []):
        objects += _resource(folder, name)
    for generator in text.get("configMapGenerator", []):
        made = _config_map(folder, generator)
        if generator.get("behavior") == "merge":
            _config_map_of(objects, made, folder)["data"].update(made["data"])
        else:
            objects.append(made)
    for patch in text.get("patches", []):
        _apply(objects, folder, patch)
    for wanted in text.get("replicas", []):
        _replicas(objects, wanted)
    for item in objects:
        for image in text.get("images", []):
            _image(item, image)
        for label in text.get("labels", []):
            _label(item, label)
        if "namespace" in text and item["kind"] not in CLUSTER_WIDE:
            item["metadata"]["namespace"] = text["namespace"]
    return objects


def pod_of(item: Manifest) -> Manifest | None:
    """The pod template of a workload, None for other objects."""
    return item["spec"].get("template") if item["kind"] in ("Deployment", "StatefulSet", "Job") else None


def _resource(folder: Path, name: str) -> list[Manifest]:
    path = folder / name
    if path.is_dir():
        return build(path)
    if not path.is_file():
        raise KustomizeError(f"{folder}: the resource {name} does not exist")
    return [item for item in yaml.safe_load_all(path.read_text(encoding="utf-8")) if item]


def _config_map(folder: Path, generator: Manifest) -> Manifest:
    data = dict(literal.split("=", 1) for literal in generator.get("literals", []))
    for name in generator.get("files", []):
        if not (folder / name).is_file():
            raise KustomizeError(f"{folder}: the file {name} of ConfigMap {generator['name']} does not exist")
        data[Path(name).name] = (folder / name).read_text(encoding="utf-8")
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": generator["name"]}, "data": data}


def _config_map_of(objects: list[Manifest], made: Manifest, folder: Path) -> Manifest:
    wanted = {"kind": "ConfigMap", "name": made["metadata"]["name"]}
    for item in objects:
        if _matches(item, wanted):
            return item
    raise KustomizeError(f"{folder}: a generator adds to {wanted['name']}, which does not exist")


def _apply(objects: list[Manifest], folder: Path, patch: Manifest) -> None:
    if "path" in patch and not (folder / patch["path"]).is_file():
        raise KustomizeError(f"{folder}: the patch {patch['path']} does not exist")
    text = (folder / patch["path"]).read_text(encoding="utf-8") if "path" in patch else patch["patch"]
    for change in yaml.safe_load_all(text):
        wanted = patch.get("target") or {"kind": change["kind"], "name": change["metadata"]["name"]}
        found = [item for item in objects if _matches(item, wanted)]
        if not found:
            raise KustomizeError(f"{folder}: a patch targets {wanted}, which does not exist")
        for item in found:
            if isinstance(change, list):
                for operation in change:
                    _json_patch(item, operation)
            elif change.get("$patch") == "delete":
                objects.remove(item)
            else:
                merged = _merge(item, change)
                item.clear()
                item.update(merged)


def _matches(item: Manifest, wanted: Manifest) -> bool:
    return item["kind"] == wanted.get("kind", item["kind"]) and item["metadata"]["name"] == wanted.get(
        "name", item["metadata"]["name"]
    )


def _merge(old: Any, new: Any, name: str = "") -> Any:
    if isinstance(old, dict) and isinstance(new, dict):
        result = copy.deepcopy(old)
        for key, value in new.items():
            if value is None:
                result.pop(key, None)
            else:
                result[key] = _merge(result[key], value, key) if key in result else copy.deepcopy(value)
        return result
    key = MERGE_KEYS.get(name)
    if isinstance(old, list) and isinstance(new, list) and key and all(key in part for part in [*old, *new]):
        parts = {part[key]: part for part in new}
        kept = [_merge(part, parts.pop(part[key], {})) for part in copy.deepcopy(old)]
        return [*kept, *parts.values()]
    return copy.deepcopy(new)


def _json_patch(item: Manifest, operation: Manifest) -> None:
    *road, last = operation["path"].strip("/").replace("~1", "/").split("/")
    place: Any = item
    for step in road:
        place = place[int(step) if isinstance(place, list) else step]
    if operation["op"] == "replace" and last not in place:
        raise KustomizeError(f"a patch replaces {operation['path']}, which does not exist")
    if operation["op"] in ("add", "replace"):
        place[last] = operation["value"]
    elif operation["op"] == "remove":
        del place[last]
    else:
        raise KustomizeError(f"unknown operation {operation['op']}")


def _replicas(objects: list[Manifest], wanted: Manifest) -> None:
    found = [item for item in objects if item["metadata"]["name"] == wanted["name"] and "replicas" in item["spec"]]
    if not found:
        raise KustomizeError(f"replicas are set for {wanted['name']}, which does not exist")
    for item in found:
        item["spec"]["replicas"] = wanted["count"]


def _image(item: Manifest, image: Manifest) -> None:
    template = pod_of(item)
    for container in template["spec"]["containers"] if template else []:
        if container["image"].split(":")[0] == image["name"]:
            container["image"] = f"{image.get('newName', image['name'])}:{image['newTag']}"


def _label(item: Manifest, label: Manifest) -> None:
    item["metadata"].setdefault("labels", {}).update(label["pairs"])
    template = pod_of(item)
    if template and label.get("includeTemplates"):
        for part in (template, *item["spec"].get("volumeClaimTemplates", [])):
            part["metadata"].setdefault("labels", {}).update(label["pairs"])
