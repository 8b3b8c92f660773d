"""What hadolint does not know of our images: their parts, users and pins.  Faults are sentences."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator

from docker.utils.build import PatternMatcher

from tests.infra.places import REPOSITORY, is_secret

BASE = re.compile(r"^[\w./-]+(:\d+\.\d+\.\d+[\w.-]*|@sha256:[0-9a-f]{64})$")


class Dockerfile:
    """The instructions of a Dockerfile as (stage, word, rest), continuation lines joined, comments left out."""

    def __init__(self, text: str) -> None:
        lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
        self.instructions: list[tuple[str, str, str]] = []
        self.parents: dict[str, str] = {}
        stage = ""
        for line in "\n".join(lines).replace("\\\n", " ").splitlines():
            if not line.strip():
                continue
            word, _, rest = line.strip().partition(" ")
            if word.upper() == "FROM":
                image, _, name = rest.partition(" AS ")
                stage = name.strip() or "last"
                self.parents[stage] = image.strip()
            self.instructions.append((stage, word.upper(), rest.strip()))

    @property
    def stages(self) -> set[str]:
        """Names of the stages."""
        return set(self.parents)

    @property
    def arguments(self) -> set[str]:
        """Names of the build arguments."""
        return {rest.split("=")[0] for _, word, rest in self.instructions if word == "ARG"}

    def of(self, stage: str, word: str) -> list[str]:
        """What an instruction says in a stage and in those that it is made from, first to last."""
        parent = self.parents.get(stage)
        before = self.of(parent, word) if parent in self.parents else []
        return [*before, *(rest for where, name, rest in self.instructions if (where, name) == (stage, word))]

    def environment(self, stage: str) -> dict[str, str]:
        """The ENV of a stage."""
        return dict(re.findall(r"(\w+)=(\S+)", " ".join(self.of(stage, "ENV"))))


def let_through(path: str, ignore: str) -> bool:
    """Does .dockerignore let this path into the build?"""
    patterns = [line for line in ignore.splitlines() if line.strip() and not line.startswith("#")]
    return not PatternMatcher(patterns).matches(path)


def problems(text: str, ignore: str) -> list[str]:
    """All faults of a Dockerfile whose context is the repository."""
    file = Dockerfile(text)
    found = [*_bases(file), *_copies(file, ignore), *_variables(file)]
    for stage in sorted(file.stages - {*file.parents.values()}):
        found += [f"stage {stage}: {problem}" for problem in _stage(file, stage)]
    return found


def _bases(file: Dockerfile) -> Iterator[str]:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    least = tuple(int(part) for part in project["requires-python"].removeprefix(">=").split("."))
    for image in file.parents.values():
        if image in file.stages:
            continue
        if not BASE.match(image):
            yield f"the base {image} is not pinned to a release"
        version = re.search(r"python:(\d+)\.(\d+)", image)
        if version and (int(version[1]), int(version[2])) < least:
            yield f"the base {image} is older than Python {project['requires-python']}"


def _copies(file: Dockerfile, ignore: str) -> Iterator[str]:
    for _, word, rest in file.instructions:
        if word == "ADD":
            yield "ADD fetches and unpacks behind your back; use COPY"
        if word != "COPY":
            continue
        *sources, _ = [part for part in rest.split() if not part.startswith("--")]
        for source in sources:
            if not (REPOSITORY / source).exists():
                yield f"COPY {source}: it does not exist"
            elif source == "." or not let_through(source, ignore):
                yield f"COPY {source}: .dockerignore keeps it out, or it is the whole folder"


def _variables(file: Dockerfile) -> Iterator[str]:
    for _, word, rest in file.instructions:
        if word in ("ENV", "ARG"):
            for name in re.findall(r"(\w+)=", rest if word == "ENV" else f"{rest}="):
                if is_secret(name):
                    yield f"{word} {name} would stay in the image"


def _stage(file: Dockerfile, stage: str) -> Iterator[str]:
    users = file.of(stage, "USER")
    if not users or not re.fullmatch(r"[1-9]\d*(:[1-9]\d*)?", users[-1]):
        yield "must end as a user with a number other than 0"
    if not any(command.startswith("[") for command in file.of(stage, "CMD")):
        yield "needs a CMD in brackets, so that it gets the signals"
    torch = next(
        part for part in (REPOSITORY / "constraints.txt").read_text(encoding="utf-8").splitlines()
        if part.startswith("torch==")
    )  # fmt: skip
    for rest in file.of(stage, "RUN"):
        for command in re.findall(r"pip install[^&]*", rest):
            if "-c constraints.txt" not in command and "--no-deps" not in command:
                yield f"installs without constraints.txt: {command.strip()}"
            if "torch" in command.lower() and torch not in command:
                yield f"the pinned torch is {torch}"
        if re.search(r"\b(curl|wget|git clone)\b", rest):
            yield "fetches something that is not a package"
    code = ("kgqa", "kgqa_core", "tasks", "flows")
    own = [(word, rest) for where, word, rest in file.instructions if where == stage]
    copied = [place for place, (word, rest) in enumerate(own) if word == "COPY" and rest.split()[0] in code]
    if not copied:
        return
    if len(copied) < len(code):
        yield f"needs all of {', '.join(code)}"
    if any(word == "RUN" and "--no-deps" not in rest for word, rest in own[copied[0] :]):
        yield "installs dependencies after the code, so that every change of code installs them again"
    if not file.of(stage, "HEALTHCHECK"):
        yield "a worker needs a HEALTHCHECK"
