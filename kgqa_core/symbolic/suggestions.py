"""What words that were not read may mean: a relation, type or value of the graph, as a line of a names file."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import yaml

from kgqa_core.config import OwnNames
from kgqa_core.linking.english import singulars
from kgqa_core.rewriting.phrases import plural
from kgqa_core.symbolic.by_labels.graph import WORD
from kgqa_core.symbolic.by_labels.parser import LabelParser
from kgqa_core.symbolic.by_labels.phrases import OwnWords
from kgqa_core.types import NameSuggestion

NEAR, TRIED = 0.5, 3
"""Likeness of words to a name from which on it may be meant, and how many names are tried for them."""
MOST_TYPES, MOST_VALUES = 500, 200
"""Types, the largest first, that words are compared with; texts, where a graph has no more."""
MOST_RUNS = 4


class NameSuggestions:
    """Finds names of one graph that are near to words."""

    def __init__(self, parser: LabelParser) -> None:
        self.graph, self.scorer, self.phrases = parser.graph, parser.scorer, parser.phrases

    def of(self, text: str, missing: str) -> Iterator[tuple[NameSuggestion, str]]:
        """Suggestions for words of a question that were not read, each with the text as it is read with its line."""
        runs = [run for run in dict.fromkeys([*missing.split(", "), *missing.split()]) if run in text]
        for words in [run for run in runs if any(len(word) > 2 for word in WORD.findall(run))][:MOST_RUNS]:
            own = next((one for one in singulars(words) if plural(one) == words), words)
            for section, key, name in self._near(own):
                line = yaml.safe_dump({key: [own]}, allow_unicode=True, width=1 << 20, default_flow_style=True).strip()
                read = OwnWords(self.graph, OwnNames.model_validate({section: {key: [own]}})).read(text)
                yield NameSuggestion(own, name, f"{section}: {line}"), read

    def _near(self, words: str) -> list[tuple[str, str, str]]:
        """Section, key and name of what is likest to words, the likest first."""
        rows, texts = self._names
        likeness = (self.scorer.phrases(texts).vectors @ self.scorer.phrases([words]).vectors[0]).tolist()
        best = dict[tuple[str, str, str], float]()
        for row, value in zip(rows, likeness, strict=True):
            best[row] = max(value, best.get(row, NEAR))
        return sorted((row for row, value in best.items() if value > NEAR), key=lambda row: -best[row])[:TRIED]

    @cached_property
    def _names(self) -> tuple[list[tuple[str, str, str]], list[str]]:
        """What words may mean, and the text that each is compared by."""
        graph, rows = self.graph, list[tuple[tuple[str, str, str], str]]()
        for relation, (key, label) in enumerate(zip(graph.keys, graph.labels, strict=True)):
            texts = (label, *self.phrases.wordings(relation), *self.phrases.wordings(relation + graph.relations))
            rows += [(("relations", key, label), text) for text in dict.fromkeys(texts) if not graph.is_type[relation]]
        for index in sorted(range(len(graph.type_keys)), key=lambda n: -int(graph.type_sizes[n]))[:MOST_TYPES]:
            rows.append((("types", graph.type_keys[index], graph.type_labels[index]), graph.type_labels[index]))
        if len(graph.texts) <= MOST_VALUES:
            rows += [(("values", text, text), text) for text in graph.texts if not text[0].isdigit()]
        return [row for row, _ in rows], [text for _, text in rows]
