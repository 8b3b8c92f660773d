"""Questions and dialogues by rule from the names of relations: the `template` writer, which needs no model.

It writes in the format of the prompts, so that its output is read and checked like a model's.  Wording follows from the
relation's label (`rewriting.phrases`), in English or, for Chinese names, in Chinese; its sentences are those of the
`template` teacher.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from kgqa_core.metrics.normalise import is_cjk
from kgqa_core.papers.ltgen.records import EntityRelationPair, Subject, Triple, shuffled
from kgqa_core.prompts import triple_form
from kgqa_core.rewriting.phrases import phrase, plural
from kgqa_core.rewriting.template import paragraph, sentences

TURNS = 7
"""Most turns of a dialogue; the paper's have 6.7 on average."""

MOST_CITED = 6
"""Most triples of one turn."""

_AUXILIARIES = ("is", "are", "was", "were")


def qa_text(pairs: Sequence[EntityRelationPair]) -> str:
    """A question for each pair, in the format of the prompt."""
    parts = [
        f"Entity Relation Pair: <<<({', '.join(pair.names)})>>>\n"
        f"Question: <<<{about_tail(*pair.names, many=len(pair.triples) > 1)}>>>"
        for pair in pairs
    ]
    return "\n\n".join(parts)


def conv_text(subject: Subject, seed: int) -> str:
    """A dialogue over the entity's triples, in the format of the prompt.

    Each turn states a relation of the entity, one way; some state two.  The first query names the entity, later ones
    may write `it`.
    """
    parts = []
    for number, group in enumerate(_turns(subject, seed)):
        parts.append(
            f"User: <<<{_query(subject, group, number, seed)}>>>\n"
            f"Agent: <<<{_reply(group)}>>>\n"
            f"T: <<<{triple_form(triple.names for triple in group)}>>>"
        )
    return "\n\n".join(parts)


def about_tail(head: str, relation: str, *, many: bool = False) -> str:
    """The question that a relation of `head` answers.

    >>> about_tail("Oslo", "country"), about_tail("Oslo", "languages spoken", many=True)
    ('What is the country of Oslo?', 'What are the languages spoken in Oslo?')
    >>> about_tail("Oslo", "located in"), about_tail("Norway", "shares border with")
    ('What is Oslo located in?', 'What does Norway share border with?')
    """
    if _chinese(relation):
        return f"{head}的{relation}是什么？"
    relation_name = phrase(relation)
    if not relation_name.is_verb:
        noun = plural(relation_name.noun) if many else relation_name.noun
        return f"What {'are' if many else 'is'} the {noun}{relation_name.link}{head}{relation_name.rest}?"
    first, _, rest = relation_name.one.partition(" ")
    if first in _AUXILIARIES:
        return f"{'Who' if rest.endswith(' by') else 'What'} {first} {head} {rest}?"
    if relation_name.many != relation_name.one:
        return f"What does {head} {relation_name.many}?"
    return f"What is it that {head} {relation_name.one}?"


def about_head(relation: str, tail: str) -> str:
    """The question whose answers have a relation that leads to `tail`.

    >>> about_head("directed by", "Ada"), about_head("country", "Norway")
    ('What was directed by Ada?', 'What has Norway as its country?')
    """
    if _chinese(relation):
        return f"什么的{relation}是{tail}？"
    relation_name = phrase(relation)
    if relation_name.is_verb:
        return f"What {relation_name.one} {tail}?"
    return f"What has {tail} as its {relation_name.noun}{relation_name.rest}?"


def _turns(subject: Subject, seed: int) -> list[tuple[Triple, ...]]:
    """Groups of triples: those of one relation and direction, or of two relations that each lead to one thing."""
    groups: dict[tuple[bool, str], list[Triple]] = {}
    for triple in subject.triples:
        groups.setdefault((triple.head.id == subject.end.id, triple.relation_key), []).append(triple)
    key = f"turns/{seed}/{subject.end.key}"
    fitting = [tuple(group) for group in groups.values() if len(group) <= MOST_CITED]
    turns: list[tuple[Triple, ...]] = []
    for group in shuffled(fitting, key):
        joins = turns and len(group) == len(turns[-1]) == 1 and _noun(group[0]) and _noun(turns[-1][0])
        both = joins and group[0].head.id == turns[-1][0].head.id == subject.end.id
        if both and _dice(key, len(turns)) < 0.3:
            turns[-1] = (*turns[-1], *group)
        else:
            turns.append(group)
    return turns[:TURNS]


def _query(subject: Subject, group: tuple[Triple, ...], number: int, seed: int) -> str:
    name = subject.end.name
    pronoun = number > 0 and _dice(f"it/{seed}/{subject.end.key}", number) < 0.5
    relations = list(dict.fromkeys(triple.relation for triple in group))
    shown = ("它" if _chinese(relations[0]) else "it") if pronoun else name
    if group[0].head.id != subject.end.id:
        return about_head(relations[0], shown)
    if len(relations) > 1:
        return f"What are the {' and the '.join(phrase(relation).noun for relation in relations)} of {shown}?"
    many = len(group) > 1
    if pronoun and _noun(group[0]):
        noun = phrase(relations[0]).noun
        return f"What {'are' if many else 'is'} its {plural(noun) if many else noun}?"
    return about_tail(shown, relations[0], many=many)


def _reply(group: tuple[Triple, ...]) -> str:
    language = "zh" if _chinese(group[0].relation) else "en"
    return paragraph(sentences([triple.names for triple in group], language), language)


def _noun(triple: Triple) -> bool:
    relation_name = phrase(triple.relation)
    return (
        not relation_name.is_verb
        and relation_name.link == " of "
        and not relation_name.rest
        and not _chinese(triple.relation)
    )


def _chinese(text: str) -> bool:
    return any(is_cjk(letter) for letter in text)


def _dice(key: str, number: int) -> float:
    return hashlib.sha256(f"{key}/{number}".encode()).digest()[0] / 256
