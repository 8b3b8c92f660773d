"""From the sentences of a question's groups to its paragraph: what stays, what is replaced, what is added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from kgqa_core.llm.protocol import Completion
from kgqa_core.prompts import triple_form
from kgqa_core.rewriting.faithfulness import Faithfulness, check
from kgqa_core.rewriting.groups import TripleGroup
from kgqa_core.rewriting.template import sentences

Action = Literal["kept", "replaced", "dropped", "cut", "added", "failed", "repeated"]
Policy = Literal["replace", "keep", "drop"]

ACTIONS: tuple[Action, ...] = ("kept", "replaced", "dropped", "cut", "added", "failed", "repeated")
"""What became of a sentence: it stands; its triples stand in its place; it is left out because it invents, because the
model was cut short in it, or because the paragraph has it already.  `added` is the triple form of facts that no
sentence states, `failed` that of a group for which the model gave no text."""

_ENDS = ".!?…。！？\"'”’」』》)）]"


@dataclass(frozen=True, slots=True)
class WrittenText:
    """What a model wrote for a group.  truncated: it reached the limit of tokens."""

    text: str
    truncated: bool = False

    @classmethod
    def of(cls, completion: Completion | None) -> WrittenText:
        """What is usable of a completion: nothing of one that failed, was refused or never came."""
        if completion is None or completion.finish not in ("stop", "length"):
            return cls("")
        return cls(completion.text, completion.finish == "length")


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of a paragraph.  text: as it stands there, or empty; written: the writer's sentence; triples: ids behind."""

    text: str
    written: str
    triples: tuple[int, ...]
    invented: tuple[str, ...]
    action: Action


@dataclass(frozen=True, slots=True)
class GroupDraft:
    """The text of a group, sentence by sentence, each with the indices of the triples that it states."""

    group: TripleGroup
    pieces: tuple[tuple[str, tuple[int, ...], tuple[str, ...], Action], ...]


def by_rule(group: TripleGroup, language: str) -> GroupDraft:
    """The group in sentences of templates."""
    made = sentences(group.named, language)
    return GroupDraft(group, tuple((each.text, each.triples, (), "kept") for each in made))


def by_model(group: TripleGroup, written: WrittenText, checked: Faithfulness | None, policy: Policy) -> GroupDraft:
    """The group in sentences of a model, what is unfaithful treated by the policy.

    checked: the alignment of written.text, None where there is no text: the group then stands in triple form.
    `replace` puts triples in the place of a sentence that invents, and adds those that no remaining sentence states, so
    that no fact is lost; `drop` leaves the sentence out; `keep` leaves the text as it is.  A sentence that states no
    triple at all ("Guam is the continent of Guam.") is left out by both.
    """
    everything = tuple(range(len(group.named)))
    if checked is None or not checked.sentences:
        return GroupDraft(group, (("", everything, (), "failed"),))
    pieces: list[tuple[str, tuple[int, ...], tuple[str, ...], Action]] = []
    covered: set[int] = set()
    last = len(checked.sentences) - 1
    for index, sentence in enumerate(checked.sentences):
        text = " ".join(sentence.text.split())
        action: Action = "kept"
        if policy != "keep":
            if written.truncated and index == last and text[-1:] not in _ENDS:
                action = "cut"
            elif sentence.invented or not sentence.triples:
                action = "replaced" if policy == "replace" and sentence.triples else "dropped"
        if action in ("kept", "replaced"):
            covered.update(sentence.triples)
        pieces.append((text, sentence.triples, sentence.invented, action))
    missing = tuple(index for index in everything if index not in covered)
    if policy == "replace" and missing:
        pieces.append(("", missing, (), "added"))
    return GroupDraft(group, tuple(pieces))


def align(group: TripleGroup, written: WrittenText | None, language: str) -> Faithfulness | None:
    """The alignment of a model's text with its group; None where there is no text."""
    return None if written is None or not written.text.strip() else check(written.text, group.named, language)


def assemble(drafts: Sequence[GroupDraft]) -> list[list[Piece]]:
    """The pieces of a paragraph, group by group.

    A sentence that the paragraph has already is left out, and so is, in triple form, a triple that an earlier piece
    states.
    """
    seen: set[str] = set()
    covered: set[int] = set()
    paragraph = []
    for draft in drafts:
        ids, named = draft.group.triples, draft.group.named
        pieces = []
        for written, indices, invented, action in draft.pieces:
            behind = tuple(ids[index] for index in indices)
            text = ""
            if action == "kept":
                if written in seen:
                    action = "repeated"
                else:
                    text = written
                    seen.add(written)
            elif action in ("replaced", "added", "failed"):
                fresh = [index for index in indices if ids[index] not in covered]
                behind = tuple(ids[index] for index in fresh) if action != "replaced" else behind
                text = triple_form(named[index] for index in fresh)
                if not fresh and action != "replaced":
                    continue
            if action in ("kept", "replaced", "added", "failed"):
                covered.update(behind)
            pieces.append(Piece(text, written, behind, invented, action))
        paragraph.append(pieces)
    return paragraph


def join(paragraph: Sequence[Sequence[Piece]], language: str) -> str:
    """The text of a paragraph; Chinese sentences stand without blanks between."""
    between = "" if language.partition("-")[0] == "zh" else " "
    return between.join(piece.text for pieces in paragraph for piece in pieces if piece.text)


def behind(paragraph: Sequence[Sequence[Piece]]) -> list[int]:
    """Ids of the triples that stand in a paragraph, in its order."""
    results: dict[int, None] = {}
    for pieces in paragraph:
        for piece in pieces:
            if piece.text:
                results.update(dict.fromkeys(piece.triples))
    return list(results)
