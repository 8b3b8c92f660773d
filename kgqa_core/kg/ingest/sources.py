"""The files that a graph is made of, found and checked."""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files as package_files
from pathlib import Path, PurePath

from kgqa_core.config import KgOptions
from kgqa_core.errors import KgInputError, nearest
from kgqa_core.kg.formats.detect import reader_of
from kgqa_core.kg.formats.encodings import NAMES
from kgqa_core.kg.formats.members import expand
from kgqa_core.kg.formats.nested_json import FORMAT, tables_of
from kgqa_core.kg.formats.source import Source
from kgqa_core.kg.mapping.model import read_mapping
from kgqa_core.kg.remote.registry import remote_of
from kgqa_core.kg.remote.snapshot import snapshot
from kgqa_core.kg.store import FILE
from kgqa_core.spool import regular_file, shorten

BUNDLED = {"bundled:atlas": "datasets/published/atlas/data/atlas.nt.gz"}
"""Graphs in the package, by the name that `kg.files` calls them."""

TABLES = frozenset({".csv", ".tsv", ".tab", ".parquet", ".xlsx", ".xls", ".ods"})
"""Endings of tables that are read where a folder is named."""


def find_sources(names: Sequence[str], options: KgOptions | None = None) -> list[Source]:
    """The files that `kg.files` names, and what is in them where they are archives or workbooks.

    Raises what `named_files` raises, and KgInputError for what cannot be opened or is in no known encoding.
    """
    members = [_checked(member) for source in named_files(names, options) for member in expand(source)]
    return [part for member in members for part in (tables_of(member) if _is_nested(member, options) else [member])]


def _is_nested(source: Source, options: KgOptions | None) -> bool:
    """Whether a file is JSON of objects, which is read as tables."""
    if options is None or options.format not in ("auto", FORMAT.name) or source.is_parquet:
        return False
    likely = options.format == FORMAT.name or FORMAT.reader().sniff(source.head(), options)
    return bool(likely) and reader_of(source, options).name == FORMAT.name


def is_folder(name: str) -> bool:
    """Whether a name is that of a folder; not where it is longer than a name may be."""
    with contextlib.suppress(OSError):
        return Path(name).expanduser().is_dir()
    return False


def named_files(names: Sequence[str], options: KgOptions | None = None) -> list[Source]:
    """The files that `kg.files` names, patterns expanded, archives and workbooks as they are.

    What is on a server is fetched first, unless it was within `kg.max_age` hours; options: how.  Raises KgInputError,
    and for servers EndpointError and StorageError.
    """
    if not names:
        raise KgInputError("kg.files is empty; name a graph file, or bundled:atlas")
    paths: list[Path] = []
    servers: dict[Path, str] = {}
    for name in names:
        if (remote := remote_of(name)) is not None:
            paths.append(snapshot(name, remote, options or KgOptions()))
            servers[paths[-1]] = name
        elif name.startswith("bundled:"):
            if name not in BUNDLED:
                raise KgInputError(f"there is no graph {name!r} in the package{nearest(name, BUNDLED)}")
            paths.append(Path(str(package_files("kgqa_core"))) / BUNDLED[name])
        elif "://" in name:
            raise KgInputError(
                f"{shorten(name)!r} is an address, no file; fetch it first, with `curl -LO ADDRESS`, and name the file "
                "(for an endpoint see `kgqa kg formats`)"
            )
        elif glob.has_magic(name) and not os.path.exists(name):
            results = sorted(Path(match) for match in glob.glob(name, recursive=True) if Path(match).is_file())
            if not results:
                raise KgInputError(f"no file matches {shorten(name)!r}; check the pattern, or name the files")
            paths += results
        elif options is not None and options.map is not None and is_folder(name):
            mapping = read_mapping(Path(options.map).expanduser())
            paths += [Path(name).expanduser() / PurePath(table.file).name for table in mapping.tables.values()]
        elif is_folder(name) and (tables := tables_in(Path(name).expanduser())):
            paths += tables
        else:
            paths.append(Path(name).expanduser())
    seen: set[Path] = set()
    for path in paths:
        _check(path)
        if path.resolve() in seen:
            raise KgInputError(f"{servers.get(path, path)} is named twice in kg.files; name it once")
        seen.add(path.resolve())
    labels = zip(paths, _labels(paths), strict=True)
    return [Source(path, servers.get(path, label)) for path, label in labels]


def tables_in(folder: Path) -> list[Path]:
    """The tables in a folder, by their names; none in one of a graph."""
    files = () if (folder / FILE).exists() else folder.iterdir()
    return sorted(path for path in files if path.is_file() and not TABLES.isdisjoint(path.suffixes))


def _checked(source: Source) -> Source:
    """A source that has been looked at, with the encoding of its text."""
    if (encoding := source.find_encoding()) is not None:
        source = replace(source, encoding=encoding, found={**source.found, "encoding": NAMES[encoding]})
    source.check()
    return source


def _check(path: Path) -> None:
    file = regular_file(path, KgInputError)
    if path.is_dir():
        inside = sorted(p.name for p in path.iterdir() if p.is_file())
        hint = f"name the files in it, {path / inside[0]} for example" if inside else "it holds no file"
        raise KgInputError(f"{path} is a directory, not a graph file; {hint}")
    if not path.exists():
        folder = path.parent
        if not folder.is_dir():
            raise KgInputError(f"there is no graph file {path}: the folder {folder} does not exist; check the path")
        near = nearest(path.name, [p.name for p in folder.iterdir()], cutoff=0.4)
        raise KgInputError(
            f"there is no graph file {path}{near or ', and nothing like it in its folder; check the name'}"
        )
    try:
        with file.open("rb") as stream:
            stream.read(1)
    except OSError as fault:
        raise KgInputError(f"{path} cannot be read: {fault.strerror}; check its permissions") from None


def _labels(paths: Sequence[Path]) -> list[str]:
    """The shortest ends of the paths that distinguish them: no folder of this machine, where the names differ."""
    depth = 1
    while True:
        labels = ["/".join(path.parts[-depth:]) for path in paths]
        if len(set(labels)) == len(labels) or depth >= max(len(path.parts) for path in paths):
            return labels
        depth += 1
