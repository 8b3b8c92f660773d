"""The kustomizations build, and what they build fits together."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.infra.kustomize import KustomizeError, Manifest, build, pod_of
from tests.infra.manifest_rules import problems
from tests.infra.places import INFRA, KUBERNETES, REPOSITORY, read_faults

PLACES = ("base", "overlays/gpu", "overlays/serve", "overlays/small")


def secrets() -> dict[str, set[str]]:
    """The Secret's keys that README tells to make."""
    text = (INFRA / "README.md").read_text(encoding="utf-8")
    return {"kgqa": set(re.findall(r"--from-literal=([a-z0-9-]+)=", text))}


def named(objects: list[Manifest], kind: str, name: str) -> Manifest:
    return next(item for item in objects if item["kind"] == kind and item["metadata"]["name"] == name)


@pytest.mark.parametrize("place", PLACES)
def test_what_a_kustomization_builds_has_no_fault(place: str) -> None:
    assert problems(build(KUBERNETES / place), secrets()) == []


def test_every_manifest_is_named_by_a_kustomization() -> None:
    for path in KUBERNETES.rglob("*.yaml"):
        if path.name != "kustomization.yaml":
            text = (path.parent / "kustomization.yaml").read_text(encoding="utf-8")
            assert path.name in text, f"{path} is built by nobody"


def by_name(tree: Any) -> Any:
    """The same tree with lists of named things in the order of their names, since kustomize has an order of its own."""
    if isinstance(tree, dict):
        return {key: by_name(value) for key, value in tree.items()}
    if isinstance(tree, list):
        parts = [by_name(value) for value in tree]
        named = all(isinstance(part, dict) and "name" in part for part in parts)
        return sorted(parts, key=lambda part: part["name"]) if named else parts
    return tree


def same_as_kustomize(folder: Path) -> None:
    command = ["kustomize", "build"] if shutil.which("kustomize") else ["kubectl", "kustomize"]
    done = subprocess.run([*command, str(folder)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    ours = build(folder)
    generated = [item["metadata"]["name"] for item in ours if item["kind"] == "ConfigMap"]
    text = re.sub(rf"\b({'|'.join(generated)})-[a-z0-9]{{10}}\b", r"\1", done.stdout)

    def key(item: Manifest) -> tuple[str, str]:
        return item["kind"], item["metadata"]["name"]

    assert sorted(by_name(list(yaml.safe_load_all(text))), key=key) == sorted(by_name(ours), key=key)


@pytest.mark.skipif(not (shutil.which("kustomize") or shutil.which("kubectl")), reason="no kustomize here")
@pytest.mark.parametrize("place", PLACES)
def test_kustomize_builds_the_same(place: str) -> None:
    same_as_kustomize(KUBERNETES / place)


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of our kustomizations to change."""
    shutil.copytree(INFRA / "postgres", tmp_path / "postgres")
    return shutil.copytree(KUBERNETES, tmp_path / "kubernetes")


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


@pytest.fixture
def own(copied: Path) -> Path:
    """The overlay that README tells to write, beside ours."""
    text = (INFRA / "README.md").read_text(encoding="utf-8")
    (block,) = (part for part in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL) if "kind: Kustomization" in part)
    folder = copied / "overlays" / "own"
    folder.mkdir()
    (folder / "kustomization.yaml").write_text(block, encoding="utf-8")
    return folder


def test_the_overlay_of_the_page_builds_and_says_what_it_is_for(own: Path) -> None:
    objects = build(own)
    assert problems(objects, secrets()) == []
    images = {pod_of(item)["spec"]["containers"][0]["image"] for item in objects if pod_of(item)}
    assert {image for image in images if "kgqa" in image and not image.startswith("registry.example/")} == set()
    config = named(objects, "ConfigMap", "servers")["data"]
    assert config["MLFLOW_ARTIFACTS_DESTINATION"].startswith("s3://")
    assert "mlflow:5000" in config["MLFLOW_HOSTS"]
    assert "storageClassName" in named(objects, "PersistentVolumeClaim", "home")["spec"]


@pytest.mark.skipif(not (shutil.which("kustomize") or shutil.which("kubectl")), reason="no kustomize here")
def test_kustomize_builds_the_overlay_of_the_page_the_same(own: Path) -> None:
    same_as_kustomize(own)


def test_overlay_gpu_starts_the_gpu_worker_and_the_base_does_not() -> None:
    assert named(build(KUBERNETES / "base"), "Deployment", "worker-gpu")["spec"]["replicas"] == 0
    worker = named(build(KUBERNETES / "overlays/gpu"), "Deployment", "worker-gpu")
    assert worker["spec"]["replicas"] == 1
    assert pod_of(worker)["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"


def test_overlay_serve_answers_with_a_token_and_is_ready_when_it_says_so() -> None:
    objects = build(KUBERNETES / "overlays/serve")
    [container] = pod_of(named(objects, "Deployment", "serve"))["spec"]["containers"]
    assert container["command"][:4] == ["kgqa", "serve", "--host", "0.0.0.0"]
    values = {entry["name"]: entry for entry in container["env"]}
    assert values["KGQA_SERVE_TOKEN"]["valueFrom"]["secretKeyRef"] == {"name": "kgqa", "key": "serve-token"}
    assert values["OMP_NUM_THREADS"]["value"] == container["resources"]["limits"]["cpu"]
    assert container["readinessProbe"]["httpGet"]["path"] == "/ready"
    assert named(objects, "Service", "serve")["spec"]["type"] == "ClusterIP"


def test_overlay_small_asks_for_no_gpu_no_shared_volume_and_fits_three_cores() -> None:
    objects = build(KUBERNETES / "overlays/small")
    assert "nvidia.com/gpu" not in yaml.safe_dump(objects)
    assert named(objects, "PersistentVolumeClaim", "home")["spec"]["accessModes"] == ["ReadWriteOnce"]
    requests = [pod_of(item)["spec"]["containers"][0]["resources"]["requests"] for item in objects if pod_of(item)]
    assert sum(_cores(request["cpu"]) for request in requests) <= 3


@pytest.mark.parametrize("place", PLACES)
def test_workers_use_as_many_threads_as_they_may_have_cores(place: str) -> None:
    for item in build(KUBERNETES / place):
        if item["metadata"]["name"].startswith("worker-"):
            container = pod_of(item)["spec"]["containers"][0]
            values = {entry["name"]: entry.get("value") for entry in container["env"]}
            cores = container["resources"]["limits"]["cpu"]
            assert (values["OMP_NUM_THREADS"], values["POLARS_MAX_THREADS"]) == (cores, cores)


def test_every_pool_of_prefect_yaml_is_made_and_has_a_worker() -> None:
    deployments = yaml.safe_load((REPOSITORY / "prefect.yaml").read_text(encoding="utf-8"))["deployments"]
    made = re.search(r"for pool in ([a-z ]+);", (INFRA / "setup.sh").read_text(encoding="utf-8"))
    assert made
    pools = set(made[1].split())
    assert {deployment["work_pool"]["name"] for deployment in deployments} <= pools
    served = {
        command[command.index("--pool") + 1]
        for item in build(KUBERNETES / "base")
        if item["kind"] == "Deployment" and "--pool" in (command := pod_of(item)["spec"]["containers"][0]["command"])
    }
    assert served == pools


FAULTS = read_faults("kubernetes")


@pytest.mark.parametrize(("file", "old", "new", "said"), [fault[1:] for fault in FAULTS], ids=[f[0] for f in FAULTS])
def test_a_fault_in_the_base_is_found(copied: Path, file: str, old: str, new: str, said: str) -> None:
    change(copied / "base" / file, old, new)
    found = problems(build(copied / "base"), secrets())
    assert any(said in problem for problem in found), found


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("base/kustomization.yaml", "  - prefect.yaml\n", "  - prefekt.yaml\n", "prefekt.yaml does not exist"),
        ("base/kustomization.yaml", "  - ../../postgres\n", "  - ../../database\n", "../../database does not exist"),
        ("base/kustomization.yaml", "labels:\n", "commonLabel:\n", "unknown fields"),
        ("overlays/small/no-gpu.yaml", "name: worker-gpu", "name: worker-gpus", "which does not exist"),
        ("overlays/small/less.yaml", "kind: StatefulSet", "kind: Deployment", "which does not exist"),
        ("overlays/small/kustomization.yaml", "name: home}", "name: house}", "which does not exist"),
        ("overlays/small/kustomization.yaml", "/spec/accessModes", "/spec/accessMode", "non-existent object"),
        ("overlays/small/kustomization.yaml", "path: less.yaml", "path: fewer.yaml", "fewer.yaml does not exist"),
    ],
)
def test_a_kustomization_that_names_nothing_is_refused(
    copied: Path, file: str, old: str, new: str, message: str
) -> None:
    change(copied / file, old, new)
    with pytest.raises(KustomizeError, match=re.escape(message)):
        build((copied / file).parent)


def _cores(text: str) -> float:
    return int(text[:-1]) / 1000 if text.endswith("m") else float(text)
