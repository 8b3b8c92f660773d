"""Words of one's own for a graph: other names of its entities, relations, types and values; relations to leave out.

A file of them is YAML, and names things by key or label:

    relations: {reports_to: [boss, manager]}
    types: {Employee: [staff member]}
    hide: [row_number]
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BeforeValidator, ValidationError

from kgqa_core.config.base import Options
from kgqa_core.errors import KgInputError, nearest
from kgqa_core.input_files import read_document

META, SECTIONS = "own_names", ("entities", "relations", "types", "values")
MOST_BYTES = 16 << 20
Texts = Annotated[
    tuple[str, ...], BeforeValidator(lambda some: [some] if some and isinstance(some, str) else some or ())
]
Names = Annotated[dict[str, Texts], BeforeValidator(lambda some: some or {})]


class OwnNames(Options):
    """Other names by key or label, and keys of relations that are left out of the graph."""

    entities: Names = {}
    relations: Names = {}
    types: Names = {}
    values: Names = {}
    hide: Texts = ()


def read_names(file: str | None) -> OwnNames:
    """The names in a file; none where there is no file.  Raises KgInputError that says what is wrong with it."""
    if file is None:
        return OwnNames()
    path, needs = Path(file).expanduser(), f"lists of names under {', '.join(OwnNames.model_fields)}: `kgqa kg words`"
    text = read_document(path, KgInputError, MOST_BYTES, needs)
    try:
        return OwnNames.model_validate(yaml.load(text, yaml.BaseLoader) or {})
    except ValidationError as faulty:
        fault = faulty.errors()[0]
        place = ".".join(map(str, fault["loc"]))
        problem = f"{place}: {fault['msg']}{nearest(place, OwnNames.model_fields)}"
    except (yaml.YAMLError, RecursionError) as faulty:
        problem = f"it is not valid YAML ({' '.join(str(faulty).split())})"
    raise KgInputError(f"{path}: {problem}; it needs {needs}")
