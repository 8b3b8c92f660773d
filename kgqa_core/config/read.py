"""Reads profiles and `--set`; all faults of a profile are reported at once, each with the nearest known name."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from kgqa_core.config.profile import Profile, known_keys
from kgqa_core.errors import PASSWORD, ConfigError
from kgqa_core.input_files import read_document

MAX_PROFILE, MAX_NODES = 4 << 20, 100_000
"""Bytes of a profile file, and the values in it with its anchors written out."""

LISTS = ("questions", "answering.answerers")
"""Keys that take a list of several in place of one: question sets, and answerers."""


def parse_settings(settings: Iterable[str]) -> dict[str, Any]:
    """`["rigel.hops=3"]` as a nested mapping; values are read as YAML, a single sign as itself.

    Raises ConfigError.
    """
    tree: dict[str, Any] = {}
    known = known_keys()
    for setting in settings:
        key, equals, text = setting.partition("=")
        key = key.strip()
        if PASSWORD.search(setting):
            raise ConfigError(
                f"--set {key.partition(':')[0]}: the value holds an address with a password, which others can read in "
                "the list of processes and in the records of runs; put it into the environment (an endpoint's key into "
                "the variable that llm.endpoints.NAME.key_env names, MLflow's address into MLFLOW_TRACKING_URI)"
            )
        if not equals:
            raise ConfigError(f"--set {setting!r} is not of the form key=value, for example rigel.hops=3")
        if key not in (*known, *LISTS) and _key_of_set(key) not in known:
            raise ConfigError(_unknown(key, known))
        node = tree
        *path, leaf = key.split(".")
        for part in path:
            node = node.setdefault(part, {})
            if not isinstance(node, dict):
                raise ConfigError(f"--set {key}: {part} is set as a whole before; write this key into it")
        if len(text) == 1 and not text.isalnum() and text != "~":  # a delimiter, which in YAML may mean something else
            node[leaf] = text
            continue
        try:
            node[leaf] = yaml.safe_load(text)
        except yaml.YAMLError as fault:
            raise ConfigError(f"--set {key}: the value {text!r} is not valid YAML: {fault}") from None
    return tree


def make_profile(*layers: Mapping[str, Any], origin: str = "profile") -> Profile:
    """A profile from nested mappings, later ones winning.  Raises ConfigError that lists every fault."""
    merged: dict[str, Any] = {}
    for layer in layers:
        _add(merged, layer)
    known = known_keys()
    lines = []
    try:
        profile = Profile.model_validate(merged)
    except ValidationError as fault:
        for error in fault.errors():
            key, question_set = ".".join(str(part) for part in error["loc"]), ""
            if error["loc"][:1] == ("further_questions",) and len(error["loc"]) > 2:
                question_set = f"question set {int(error['loc'][1]) + 2}: "
                key = ".".join(("questions", *(str(part) for part in error["loc"][2:])))
            if error["type"] == "extra_forbidden":
                lines.append(question_set + _unknown(key, known))
            elif error["type"] == "value_error":
                lines.append(f"{question_set}{key}: {error['ctx']['error']}".removeprefix(": "))
            else:
                lines.append(f"{question_set}{key}: {error['msg']}, but it is {error['input']!r}")
    if lines:
        raise ConfigError(f"{origin} has {len(lines)} fault(s):\n  " + "\n  ".join(lines))
    return profile


def recorded_profile(record: Mapping[str, Any]) -> Profile:
    """The profile of a run's record.  Raises ConfigError."""
    return make_profile(record["profile"], origin=f"the profile of run {record.get('run_id')} (run it again)")


def read_profile(path: Path) -> dict[str, Any]:
    """The nested mapping of a profile file.  Raises ConfigError."""
    return parse_profile(read_document(path, ConfigError, MAX_PROFILE, "sections such as kg and questions"), path)


def parse_profile(text: str, path: Path | str) -> dict[str, Any]:
    """The nested mapping of the text of a profile.  path: what it is called.  Raises ConfigError."""
    try:
        nodes = _nodes(yaml.compose(text, yaml.SafeLoader), {})
        if nodes > MAX_NODES:
            raise ConfigError(
                f"profile {path} expands to more than {MAX_NODES:,} values by its anchors; write out what it means"
            )
        tree = yaml.safe_load(text)
    except yaml.YAMLError as fault:
        raise ConfigError(f"profile {path} cannot be read: {fault}") from None
    except RecursionError:
        raise ConfigError(f"profile {path} is nested too deeply; sections hold keys, and keys values") from None
    if not isinstance(tree, dict):
        raise ConfigError(f"profile {path} must be a mapping of sections, but it is {type(tree).__name__}")
    return tree


def _nodes(node: Any, known: dict[int, float]) -> float:
    """Values of a YAML document with its aliases written out; without end where an alias holds itself."""
    if node is None or isinstance(node, yaml.ScalarNode):
        return 1
    if id(node) not in known:
        known[id(node)] = math.inf
        parts = [part for pair in node.value for part in (pair if isinstance(pair, tuple) else (pair,))]
        known[id(node)] = 1 + sum(_nodes(part, known) for part in parts)
    return known[id(node)]


def _key_of_set(key: str) -> str:
    """`questions.path` of `questions.NAME.path`, a key of the question set of that name; empty for any other key."""
    section, _, rest = key.partition(".")
    return f"{section}.{rest.partition('.')[2]}" if section == "questions" and "." in rest else ""


def _unknown(key: str, known: list[str]) -> str:
    """What is wrong with a key that no option has."""
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    return f"unknown key '{key}'" + (
        f"; did you mean '{near[0]}'?" if near else "; `kgqa run --help` names the sections"
    )


def _add(merged: dict[str, Any], layer: Mapping[str, Any]) -> None:
    """Put a layer over earlier ones; what names question sets or answerers anew takes the place of all earlier ones.

    Keys under the name of one of several question sets change that one.  Raises ConfigError where single keys do not
    say which, or name a set that there is not.
    """
    listed, changed = merged.get("questions"), layer.get("questions")
    several = isinstance(listed, list | tuple) or bool(merged.get("further_questions"))
    if several and isinstance(changed, Mapping) and not {"name", "source"} <= changed.keys():
        every = listed if isinstance(listed, list | tuple) else (listed, *merged.pop("further_questions"))
        sets = [dict(one) for one in every if isinstance(one, Mapping)]
        names = [str(one.get("name")) for one in sets]
        if wrong := [key for key, keys in changed.items() if key not in names or not isinstance(keys, Mapping)]:
            raise ConfigError(
                f"the profile has several question sets, and {', '.join(f'questions.{key}' for key in wrong)} does not "
                f"say of which; write questions.NAME.KEY=VALUE with one of the names {', '.join(names)}"
            )
        for one in sets:
            _merge(one, changed.get(one.get("name"), {}))
        merged["questions"] = sets
        layer = {key: value for key, value in layer.items() if key != "questions"}
    elif several and changed is not None:
        merged.pop("questions")
        merged.pop("further_questions", None)
    answering = layer.get("answering")
    if isinstance(answering, Mapping) and not {"answerer", "more"} & answering.keys() and answering.get("answerers"):
        rest = {name: value for name, value in answering.items() if name != "answerers"}
        names = answering["answerers"]
        if isinstance(names, list | tuple):
            layer = {**layer, "answering": {**rest, "answerer": names[0], "more": list(names[1:])}}
    _merge(merged, layer)


def _merge(base: dict[str, Any], extra: Mapping[str, Any]) -> None:
    for key, value in extra.items():
        if isinstance(value, Mapping) and isinstance(base.get(key), dict):
            _merge(base[key], value)
        else:
            base[key] = dict(value) if isinstance(value, Mapping) else value
