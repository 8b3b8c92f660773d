"""Words that the owner of a graph gave its relations, types and values: a question gets those of the graph for them."""

from __future__ import annotations

import re

from kgqa_core.rewriting.phrases import plural
from kgqa_core.symbolic.by_labels.graph import LabelGraph
from kgqa_core.symbolic.by_labels.phrases import relation_words


class OwnWords:
    """The own words of one graph, also in the plural.

    A noun for a relation stands for its noun, or else the type that it leads to; a verb stands for its label.
    """

    def __init__(self, graph: LabelGraph) -> None:
        own = graph.own_names
        texts = {name: text for text, names in own.values.items() for name in names}
        for key, label, end in zip(graph.keys, graph.labels, graph.tail_type.tolist(), strict=True):
            for name in own.relations.get(key, ()):
                noun = relation_words(label, "").noun or (graph.type_labels[end] if end >= 0 else label.lower())
                texts[name] = noun if relation_words(name, "").noun else label.lower()
        for key, index in graph.type_of_key.items():
            texts |= dict.fromkeys(own.types.get(key, ()), graph.type_labels[index])
        texts = {plural(name): plural(text) for name, text in texts.items()} | texts
        self._texts = {name.lower(): text for name, text in texts.items()}
        longest = "|".join(map(re.escape, sorted(self._texts, key=len, reverse=True)))
        self._pattern = re.compile(rf"(?<!\w)(?:{longest or '$^'})(?!\w)", re.IGNORECASE)

    def replace(self, text: str) -> str:
        """The text in words of the graph; longer own words count before shorter ones."""
        return self._pattern.sub(lambda found: self._texts[found[0].lower()], text)
