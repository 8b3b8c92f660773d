"""The packaged YAML files mean the same to both readers of PyYAML."""

from __future__ import annotations

import yaml

from kgqa_core.datasets.derived.thesaurus import FILES
from kgqa_core.datasets.files.packaged_yaml import read_yaml
from tests.conftest import REPOSITORY


def test_both_readers_find_the_same_in_every_packaged_file() -> None:
    wordings = REPOSITORY / "tools" / "atlas" / "templates.yaml"
    for file in (*FILES, wordings):
        text = file.read_text(encoding="utf-8")
        assert read_yaml(text) == yaml.safe_load(text), str(file)
