"""What an encoder reads: the question with the mention of its topic replaced by one neutral token.

A relation path depends on how a question is worded, not on whom it is about.  Without the name, questions about
entities that training never saw look like those that it saw, and equal wordings are encoded once.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from kgqa_core.kg.names import key_end, key_name
from kgqa_core.types import Question

_LETTER = re.compile("[0-9A-Za-z\u00c0-\u0dff]")
"""Characters of scripts that put spaces between words; Chinese, Japanese, Thai and others do not."""


def mask_topic(question: Question, token: str | None, names: Mapping[int, Sequence[str]] | None = None) -> str:
    """The question's text in which each topic's longest mention is replaced by `token`; None leaves it there.

    names: surface forms of topic entities by id, where a graph store is at hand; topic keys serve in any case.
    A topic that is not mentioned leaves the text as it is.
    """
    if token is None:
        return " ".join(question.text.split())
    forms = [set(key_forms(key)) for key in question.topic_keys]
    if names:
        if len(forms) == len(question.topic_entities):
            for names_of_topic, entity in zip(forms, question.topic_entities, strict=True):
                names_of_topic.update(names.get(entity, ()))
        else:
            forms += [set(names.get(entity, ())) for entity in question.topic_entities]
    return mask_names(question.text, [(names_of_topic, token) for names_of_topic in forms])


def mask_mentions(
    question: Question,
    mentions: Sequence[Sequence[int]],
    tokens: Sequence[str],
    names: Mapping[int, Sequence[str]] | None = None,
) -> str:
    """The question's text in which the longest mention of each group of topics is replaced by its token.

    mentions: places in `topic_entities` of the topics that one mention may mean.  tokens: one for each mention.
    """
    paired = len(question.topic_keys) == len(question.topic_entities)
    forms: list[tuple[Collection[str], str]] = []
    for indices, token in zip(mentions, tokens, strict=True):
        names_of_topic = {form for index in indices for form in (names or {}).get(question.topic_entities[index], ())}
        if paired:
            names_of_topic.update(form for index in indices for form in key_forms(question.topic_keys[index]))
        forms.append((names_of_topic, token))
    return mask_names(question.text, forms)


def mask_names(text: str, forms: Sequence[tuple[Collection[str], str]]) -> str:
    """The text in which the longest mention of each set of forms is replaced by its token; longest forms first."""
    for names, token in sorted(forms, key=lambda pair: -max((len(form) for form in pair[0]), default=0)):
        for form in sorted((form for form in names if form.strip()), key=lambda form: (-len(form), form)):
            masked = _replaced(text, form, token)
            if masked != text:
                text = masked
                break
    return " ".join(text.split())


def is_mentioned(text: str, form: str) -> bool:
    """Whether a name stands in a text, whatever its case, and not as a part of a longer word."""
    return form.lower() in text.lower() and _replaced(text, form, "\0") != text


def topic_names(kg: Path | None, questions: Sequence[Question]) -> dict[int, list[str]]:
    """Surface forms of the topic entities of some questions; empty without a graph store."""
    if kg is None:
        return {}
    from kgqa_core.kg.store import KgStore

    with KgStore.open(kg) as store:
        return store.surface_forms(sorted({entity for question in questions for entity in question.topic_entities}))


def key_forms(key: str) -> list[str]:
    """What an entity may be called by its key: the key, and of an IRI its last part in words."""
    return list(dict.fromkeys((key, key_end(key), key_name(key))))


def _replaced(text: str, form: str, token: str) -> str:
    """The text with every mention of `form` replaced, whatever its case, unless it is part of a longer word."""
    low, wanted = text.lower(), form.lower()
    if len(low) != len(text) or len(wanted) != len(form):  # a few letters change length with their case
        low, wanted = text, form
    parts, done, start = [], 0, low.find(wanted)
    while start >= 0:
        stop = start + len(wanted)
        inside_word = (_is_letter(low[start - 1 : start]) and _is_letter(wanted[0])) or (
            _is_letter(low[stop : stop + 1]) and _is_letter(wanted[-1])
        )
        if not inside_word:
            parts += [text[done:start], token]
            done = stop
        start = low.find(wanted, stop if not inside_word else start + 1)
    return "".join([*parts, text[done:]])


def _is_letter(character: str) -> bool:
    return _LETTER.fullmatch(character) is not None
