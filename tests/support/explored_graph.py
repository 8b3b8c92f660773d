"""A small graph with labels for answerers that explore: two hops, a name that two entities share, a hub."""

from __future__ import annotations

from pathlib import Path

from kgqa_core.config import DkgOptions, KgOptions
from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.export import export
from kgqa_core.kg.build import build as build_kg
from kgqa_core.kg.store import KgStore
from kgqa_core.types import Question
from kgqa_core.workspace import Workspace

LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
FACTS = (
    ("Q1", "capital", "Q2"), ("Q2", "mayor", "Q3"), ("Q3", "born_in", "Q4"), ("Q5", "capital", "Q6"),
    ("Q6", "mayor", "Q7"), ("Q4", "located_in", "Q5"), ("Q2", "twin_city", "Q6"), ("Q2", "twin_city", "Q8"),
    ("Q3", "spouse", "Q7"),
)  # fmt: skip
LABELS = {
    "Q1": "Avalonia", "Q2": "Zweib", "Q3": "Ann Alder", "Q4": "Quelmar", "Q5": "Bergonia", "Q6": "Twinham",
    "Q7": "Bob Birch", "Q8": "Twinham", "Q9": "Lonely Island",
}  # fmt: skip
HUB = 60


def write_explored_graph(folder: Path) -> dict[str, Path]:
    """The graph as `kg` and `dkg` below a folder, and the file that it was built from."""
    lines = [f"<http://x/{head}> <http://x/{relation}> <http://x/{tail}> ." for head, relation, tail in FACTS]
    lines += [f"<http://x/L{number}> <http://x/lives_in> <http://x/Q4> ." for number in range(HUB)]
    lines += [f'<http://x/{key}> {LABEL} "{label}"@en .' for key, label in LABELS.items()]
    lines += [f'<http://x/L{number}> {LABEL} "Citizen {number:02}"@en .' for number in range(HUB)]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "graph.nt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = {name: folder / name for name in ("kg", "dkg")}
    for own in found.values():
        own.mkdir()
    build_kg(Workspace(found["kg"]), options=KgOptions(files=(str(folder / "graph.nt"),)))
    export(Workspace(found["dkg"]), kg=found["kg"], options=DkgOptions())
    return found | {"file": folder / "graph.nt"}


class OpenGraph:
    """The graph in memory."""

    def __init__(self, folders: dict[str, Path]) -> None:
        self.folders = folders
        self.dkg, self.store = Dkg.open(folders["dkg"]), KgStore.open(folders["kg"])
        self.ids = {label: found[0] for label, found in self.store.resolve([*LABELS.values()]).items()}
        keys = self.store.resolve([f"http://x/{key}" for key in LABELS])
        self.ids |= {key.removeprefix("http://x/"): found[0] for key, found in keys.items()}

    def question(self, text: str, *topics: str, id: str = "q1") -> Question:
        """A question about some entities, by label or key."""
        return Question(id, text, topic_entities=tuple(self.ids[topic] for topic in topics))
