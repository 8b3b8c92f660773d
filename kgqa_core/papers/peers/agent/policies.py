"""The two policies of an agent: the multi-turn loop of KG-R1, and the beam of Think-on-Graph.

A policy is a generator.  It yields what it wants a model to reply to, and is sent the reply, or None where none could
be read; it returns the names that the model answers with, None where it gave no answer.  Who runs it knows models,
caches and limits; a policy knows the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field

from kgqa_core.config import AgentOptions
from kgqa_core.kg.verbalise import triple_text
from kgqa_core.papers.peers.agent.forms import (
    ANSWER,
    CHOOSE_ENTITIES,
    CHOOSE_RELATIONS,
    JUDGE,
    OPERATIONS,
    ParsedReply,
    ReplyForm,
    as_json,
)
from kgqa_core.papers.peers.agent.operations import ExplorationSession, Observation, OperationRefused
from kgqa_core.papers.peers.agent.protocols import DialogueTurn

LOOP = (
    "You answer a question from a knowledge graph, of which you see one operation at a time. Think about what is "
    "missing, then do one operation: list the relations out of or into an entity, or follow a relation out of or into "
    "an entity. Names are used exactly as they were shown. When the graph has shown the answers, give them all with "
    "`answer`; answer with none if the graph does not hold them."
)
"""Instructions of the loop (after Song et al. 2025)."""

BEAM = (
    "You answer a question from a knowledge graph step by step, as a search that keeps a few relations and entities at "
    "each step. Names are used exactly as they are shown."
)
"""Instructions of the beam (after Sun et al. 2024)."""

LAST = "This is the last turn: answer now with what was shown."
SEVERAL = "Do one of the operations that you were given, with all of its arguments."


@dataclass(slots=True)
class StepRequest:
    """What a policy wants a model to reply to: one of some forms, after the turns of a dialogue."""

    system: str
    user: str
    forms: Sequence[ReplyForm]
    turns: Sequence[DialogueTurn] = ()


@dataclass(slots=True)
class Progress:
    """What a policy leaves behind as it goes.  closing: limits leave one more request, which asks for the answer."""

    steps: list[str] = field(default_factory=list)
    refused: int = 0
    closing: bool = False


Policy = Generator[StepRequest, ParsedReply | None, tuple[str, ...] | None]


def loop(question: str, session: ExplorationSession, options: AgentOptions, progress: Progress) -> Policy:
    """One operation a turn, each answered by its observation, until the model answers (Song et al. 2025, section 3).

    The last turn offers the answer alone.  A turn without a reply that can be read is answered with what was wrong, at
    most `options.faults` times.
    """
    user = f"Question: {question}\nTopic entities: {as_json(list(session.topic_names))}"
    turns: list[DialogueTurn] = []
    faults = 0
    for turn in range(options.turns):
        last = progress.closing or turn + 1 == options.turns
        forms = (ANSWER,) if last else (*OPERATIONS, ANSWER)
        shown = [*turns, DialogueTurn(None, LAST)] if last else turns
        reply = yield StepRequest(LOOP, user, forms, list(shown))
        if reply is None:
            faults += 1
            if faults > options.faults or last:
                return None
            turns.append(DialogueTurn(None, SEVERAL))
            continue
        if reply.form == ANSWER.name:
            progress.steps.append(_step(reply, None))
            return tuple(reply.arguments["answers"])
        try:
            observation = _perform(reply, session)
        except OperationRefused as refused:
            progress.refused += 1
            turns.append(DialogueTurn(reply, as_json({"error": str(refused)})))
            progress.steps.append(_step(reply, f"refused: {refused}"))
            continue
        turns.append(DialogueTurn(reply, _as_text(reply, observation)))
        more = f" and {observation.more} more" if observation.more else ""
        progress.steps.append(_step(reply, ", ".join(observation.names) + more))
    return None


def _perform(reply: ParsedReply, session: ExplorationSession) -> Observation:
    """What an operation of the loop returns.  Raises OperationRefused."""
    entity = session.entity(reply.arguments["entity"])
    out = reply.form.endswith("_out")
    if reply.form.startswith("relations"):
        return session.relations(entity, out=out)
    relation = session.relation(reply.arguments["relation"])
    targets, more = session.follow(entity, relation, out=out)
    names = session.show(targets)
    session.visit(entity, relation, targets, out=out)
    return Observation(names, more)


def _as_text(reply: ParsedReply, observation: Observation) -> str:
    what = "relations" if reply.form.startswith("relations") else "entities"
    listed: dict[str, object] = {what: list(observation.names)}
    return as_json(listed | ({"more": observation.more} if observation.more else {}))


def _step(reply: ParsedReply, result: str | None) -> str:
    """`follow_out(France, capital): Paris`, with the thought before it."""
    given = [", ".join(value) if isinstance(value, list) else str(value) for value in reply.arguments.values()]
    thought = f"{reply.thought} | " if reply.thought else ""
    return f"{thought}{reply.form}({', '.join(given)})" + (f": {result}" if result is not None else "")


@dataclass(frozen=True, slots=True)
class Beam:
    """An entity that the beam keeps, and how the model scored the way to it."""

    entity: int
    score: float


def beam(question: str, session: ExplorationSession, options: AgentOptions, progress: Progress) -> Policy:
    """Relations and then entities pruned by the model at each depth, until it finds the facts enough or the depth is
    reached (Sun et al. 2024, section 2.1); then the answer from the facts.

    A pruning that cannot be read keeps nothing.  An entity is not visited twice.
    """
    query = f"Question: {question}"
    frontier = [Beam(topic, 1.0) for topic in session.topics[: options.width]]
    seen = set(session.topics)
    facts: list[str] = []
    for depth in range(1, options.depth + 1):
        reached: dict[int, tuple[float, int, int, bool]] = {}
        for state in frontier:
            if progress.closing:
                break
            yield from _grow(query, state, seen, session, options, progress, reached)
        best = sorted(reached.items(), key=lambda item: (-item[1][0], item[0]))[: options.width]
        if not best:
            break
        for entity, (_, source, relation, out) in best:
            session.visit(source, relation, [entity], out=out)
            facts.append(_fact(session, source, relation, entity, out=out))
        frontier = [Beam(entity, row[0]) for entity, row in best]
        seen.update(reached)
        if depth == options.depth or progress.closing:
            break
        reply = yield StepRequest(BEAM, f"{query}\nFacts: {as_json(facts)}", (JUDGE,))
        enough = reply is not None and bool(reply.arguments["enough"])
        progress.steps.append(f"depth {depth}: {'enough' if enough else 'not enough'}")
        if enough:
            break
    reply = yield StepRequest(BEAM, f"{query}\nFacts: {as_json(facts)}", (ANSWER,))
    if reply is None:
        return None
    progress.steps.append(_step(reply, None))
    return tuple(reply.arguments["answers"])


def _grow(
    query: str,
    beam_state: Beam,
    seen: set[int],
    session: ExplorationSession,
    options: AgentOptions,
    progress: Progress,
    paths: dict[int, tuple[float, int, int, bool]],
) -> Generator[StepRequest, ParsedReply | None, None]:
    """Adds to `paths` what the model keeps behind one entity: entity → (score, source, relation, direction)."""
    name = session.names[beam_state.entity]
    ways = {
        "out": session.relations(beam_state.entity, out=True),
        "in": session.relations(beam_state.entity, out=False),
    }
    if not any(listed.names for listed in ways.values()):
        return
    offered = {way: list(listed.names) for way, listed in ways.items()}
    user = f"{query}\nEntity: {name}\nRelations: {as_json(offered)}\nKeep at most {options.width} relations."
    reply = yield StepRequest(BEAM, user, (CHOOSE_RELATIONS,))
    chosen = reply.arguments["relations"] if reply is not None else []
    valid = [row for row in chosen if row["relation"] in offered.get(row["direction"], ())]
    progress.refused += len(chosen) - len(valid)
    valid.sort(key=lambda row: -_score(row))
    progress.steps.append(
        f"relations of {name}: "
        + (", ".join(f"{r['relation']} ({r['direction']})" for r in valid[: options.width]) or "none")
    )
    for row in valid[: options.width]:
        if progress.closing:
            return
        out = row["direction"] == "out"
        relation = session.relation(row["relation"])
        try:
            targets, _ = session.follow(beam_state.entity, relation, out=out, without=seen)
        except OperationRefused:
            continue  # all that it leads to was visited
        names = session.show(targets)
        scores = {target: 1.0 for target in targets}
        if len(targets) > 1:
            user = (
                f"{query}\nEntity: {name}\nRelation: {row['relation']} ({row['direction']})\n"
                f"Entities: {as_json(list(names))}\nKeep at most {options.width} entities."
            )
            reply = yield StepRequest(BEAM, user, (CHOOSE_ENTITIES,))
            picked = reply.arguments["entities"] if reply is not None else []
            known = {shown: target for shown, target in zip(names, targets, strict=True)}
            scores = {known[own["entity"]]: _score(own) for own in picked if own["entity"] in known}
            progress.refused += sum(own["entity"] not in known for own in picked)
        best = sorted(scores.items(), key=lambda item: (-item[1], item[0]))[: options.width]
        progress.steps.append(
            f"entities by {row['relation']}: " + (", ".join(session.names[e] for e, _ in best) or "none")
        )
        for entity, score in best:
            total = beam_state.score * _score(row) * score
            if entity not in paths or total > paths[entity][0]:
                paths[entity] = (total, beam_state.entity, relation, out)


def _score(row: Mapping[str, object]) -> float:
    """A score in [0, 1]."""
    given = row["score"]
    return min(1.0, max(0.0, float(given))) if isinstance(given, int | float) and given == given else 0.0


def _fact(session: ExplorationSession, source: int, relation: int, target: int, *, out: bool) -> str:
    head, tail = (source, target) if out else (target, source)
    return triple_text(session.names[head], session.view.relation_names[relation], session.names[tail])


POLICIES: Mapping[str, Callable[[str, ExplorationSession, AgentOptions, Progress], Policy]] = {
    "loop": loop,
    "beam": beam,
}
"""By `agent.policy`."""
