"""What words that were not read may mean: a relation, type or value of the graph, as a line of a names file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
import yaml
from numpy.typing import NDArray

from kgqa_core.config import OwnNames
from kgqa_core.linking.english import singulars
from kgqa_core.linking.words import usualness
from kgqa_core.nn.sentence_encoder import SentenceEncoder
from kgqa_core.nn.vectors import ONE
from kgqa_core.rewriting.phrases import plural
from kgqa_core.search.graph import WORD
from kgqa_core.search.phrases import OwnWords
from kgqa_core.symbolic.by_labels.parser import LabelParser
from kgqa_core.types import NameSuggestion

NEAR, NEARER, TRIED = 0.55, 0.7, 3
"""Likeness of words to a name from which on it may be meant, that of a type, and of a word that English hardly has, and
how many names are tried."""
MOST_RUNS, MOST_TYPES, MOST_VALUES, BATCHED = 4, 500, 200, 64
"""Words of a question; types, the largest first, that they are compared with; texts, where a graph has no more; tokens
that are encoded at a time, since words come one by one."""


class NameSuggestions:
    """Finds names of one graph that are near to words."""

    def __init__(self, parser: LabelParser) -> None:
        self.graph, self.relations = parser.graph, parser.phrases.relation_words
        self._encoder: SentenceEncoder | None = None

    def of(self, text: str, missing: str) -> Iterator[tuple[NameSuggestion, str]]:
        """Suggestions for words of a question that were not read, each with the text as it is read with its line."""
        runs = [run for run in dict.fromkeys([*missing.replace(",", "").split(), *missing.split(", ")]) if run in text]
        for words in [run for run in runs if any(len(word) > 2 for word in WORD.findall(run))][:MOST_RUNS]:
            own = max((one for one in singulars(words) if plural(one) == words), key=usualness, default=words)
            for section, key, name in self._near(own):
                line = yaml.safe_dump({key: [own]}, allow_unicode=True, width=1 << 20, default_flow_style=True).strip()
                read = OwnWords(self.graph, OwnNames.model_validate({section: {key: [own]}})).read(text)
                yield NameSuggestion(own, name, f"{section}: {line}"), read

    def _near(self, words: str) -> list[tuple[str, str, str]]:
        """Section, key and name of what is likest to words, the likest first."""
        rows, vectors = self._names
        likeness = vectors @ self._encoded([words])[0]
        usual = words.islower() and all(map(usualness, WORD.findall(words)))
        least = [NEAR if usual and section != "types" else NEARER for section, _, _ in rows]
        order = [n for n in np.argsort(-likeness, kind="stable").tolist() if likeness[n] >= least[n]]
        return [*dict.fromkeys(rows[n] for n in order)][:TRIED]

    @cached_property
    def _names(self) -> tuple[list[tuple[str, str, str]], NDArray[np.float32]]:
        """What words may mean, and the vector of what each is called."""
        graph, rows = self.graph, list[tuple[tuple[str, str, str], str]]()
        for key, label, words, is_type in zip(graph.keys, graph.labels, self.relations, graph.is_type, strict=True):
            rows += [(("relations", key, label), text) for text in {label: 0, words.noun: 0} if text and not is_type]
        for index in np.argsort(-graph.type_sizes, kind="stable")[:MOST_TYPES].tolist():
            rows.append((("types", graph.type_keys[index], graph.type_labels[index]), graph.type_labels[index]))
        if len(graph.texts) <= MOST_VALUES:
            rows += [(("values", text, text), text) for text in graph.texts if not text[0].isdigit()]
        return [row for row, _ in rows], self._encoded([text for _, text in rows])

    def _encoded(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of length 1 by the sentence encoder as it comes, which knows what words mean."""
        self._encoder = self._encoder or SentenceEncoder("minilm", section="label_parser", batch_tokens=BATCHED)
        return np.asarray(self._encoder.encode(texts) / ONE, dtype=np.float32)
