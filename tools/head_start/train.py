"""Trains the packaged head start of the label parser.

    python -m tools.head_start.train --data ../shared/data --work DIR --out kgqa_core/symbolic/by_labels/head_start

Questions: made by the generator over a sample of Wikidata that holds no fact of a scored set (`real_graph`) and over
graphs of invented facts (`invented`), and those of LC-QuAD 2 (Apache-2.0) that the sample has a form for.  Prepared
examples lie in `--work` and are not made twice.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from kgqa_core.builders.questions.generate import make
from kgqa_core.config import KgOptions, LinkingOptions
from kgqa_core.config.generated_questions import GeneratedQuestionsOptions, KindShares
from kgqa_core.errors import FormError
from kgqa_core.kg.build import build
from kgqa_core.kg.store import KgStore
from kgqa_core.linking.dictionary import build as build_mentions
from kgqa_core.linking.tagger import open_tagger
from kgqa_core.logic.forms import And, Class, Count, Entity, Form, Holds, Join, Step, elements
from kgqa_core.logic.parser import parse
from kgqa_core.logic.sparql import from_sparql
from kgqa_core.logic.sparql_query import Outside
from kgqa_core.rewriting.phrases import phrase
from kgqa_core.search.graph import LabelGraph
from kgqa_core.store.publish import publish_folder
from kgqa_core.symbolic.by_labels.encoder import TextEncoder
from kgqa_core.symbolic.by_labels.examples import LabelExample, make_examples
from kgqa_core.symbolic.by_labels.model import LabelModel, load, save
from kgqa_core.symbolic.by_labels.parser import BLOCK, HEAD_FEATURES, SCORED, LabelParser, none_features
from kgqa_core.symbolic.by_labels.scorer import LabelScorer, ScoreNetwork
from kgqa_core.symbolic.by_labels.stage import link_some, question_without_answer
from kgqa_core.symbolic.by_labels.train import FitOptions, fit
from kgqa_core.types import Question
from kgqa_core.workspace import Workspace
from tools.head_start.invented import write_graph
from tools.head_start.real_graph import build_real_graph

log = logging.getLogger("head_start")
HOPS = 3
RENAMED = 0.4
"""Share of the questions over the sample of Wikidata that call a relation otherwise, where it has other names."""
_NO_NOUN = re.compile(r"\b(?:by|in|at|on|to|is|are|was|has|had|with|for|from)$|^(?:is|are|was|has|had|can) |[^\w -]")
SHARES = KindShares(
    yes_no=12, existence=0, intersection=11, difference=5, ordinal=5, union=2, siblings=9, three_hops=8, after_best=8,
    absence=6, text_value=8, empty=6, total=3, average=3, share=3, first_k=5, group=4, greatest_value=1, least_value=1,
)  # fmt: skip


def main() -> None:
    """Reads the command line and trains."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of public data")
    parser.add_argument("--whole", type=Path, required=True, help="wikidata_mini as `kgqa kg build` made it")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--invented", type=int, default=6, help="graphs of invented facts")
    parser.add_argument("--real-size", type=int, default=9_000)
    parser.add_argument("--invented-size", type=int, default=1_500)
    parser.add_argument("--steps", type=int, default=1_200)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--start", type=Path, help="folder of a model to go on from")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    options.work.mkdir(parents=True, exist_ok=True)
    network = load(options.start, merge=False).network if options.start else ScoreNetwork(TextEncoder())
    scorer = LabelScorer(network)
    graphs = [build_real_graph(options.data, options.whole, options.work)]
    graphs += [_invented(options.work, options.seed * 1_000 + n, n % 3 != 2) for n in range(options.invented)]
    for turn in range(options.rounds):
        examples: list[LabelExample] = []
        for place, folder in enumerate(graphs):
            size = options.real_size if place == 0 else options.invented_size
            hops = HOPS if place % 2 == 1 else 2
            data = options.data if place == 0 else None
            examples += _examples(scorer, folder, size, options.seed + turn, data, hops)
        log.info("round %d: %d examples", turn, len(examples))
        examples = hardest_first(scorer, examples)
        plan = FitOptions(steps=options.steps, candidates=10)
        log.info("%s", fit(scorer, examples, plan, options.seed + turn, _Log()))
        log.info("loss by features alone %.3f", fit_quick(scorer, examples, options.seed + turn))
        log.info("loss of the scores %.3f", fit_scores(scorer, examples, options.seed + turn))
        save(options.work / f"round{turn}", LabelModel(network, HOPS))
    save(options.out, LabelModel(network, HOPS))


@torch.inference_mode()
def with_heads(scorer: LabelScorer, examples: Sequence[LabelExample]) -> list[LabelExample]:
    """Examples whose features hold what the heads say of their questions."""
    results = []
    for start in range(0, len(examples), BLOCK):
        block = examples[start : start + BLOCK]
        pooled = scorer.questions([one.query.text for one in block]).pooled
        logs = [(torch.log_softmax(head(pooled), -1).clamp(min=-8) / 4).numpy() for head in scorer.network.heads]
        for place, one in enumerate(block):
            features = one.features.copy()
            for index, (column, log) in enumerate(zip(HEAD_FEATURES, logs, strict=True)):
                classes = one.classes[:, index]
                features[:, column] = np.where(classes >= 0, log[place][np.maximum(classes, 0)], 0.0)
            results.append(replace(one, features=features))
    return results


@torch.inference_mode()
def hardest_first(scorer: LabelScorer, examples: Sequence[LabelExample]) -> list[LabelExample]:
    """Examples whose candidates stand in the order of the present scores, so that a batch has the likeliest wrong."""
    told = [_likeliest(scorer, one) for one in with_heads(scorer, examples) if one.texts]
    results = []
    for one, likeness in zip(told, _likeness(scorer, told), strict=True):
        scores = scorer.network.score(torch.from_numpy(likeness), torch.from_numpy(one.features)).numpy()
        results.append(_reordered(one, np.argsort(-scores, kind="stable").tolist()))
    return results


def fit_quick(scorer: LabelScorer, examples: Sequence[LabelExample], seed: int, steps: int = 1_500) -> float:
    """Trains the network that chooses by features alone which candidates are scored; returns its last loss.

    loss = -log Σ_{f right} softmax(all candidates)_f, of the questions that have a right one.
    """
    own = [one for one in with_heads(scorer, examples) if one.right.any()]
    x, right, known, generator = *_padded(own, [one.features for one in own]), torch.Generator().manual_seed(seed)
    net, value = scorer.network.quick, 0.0
    for _, optimizer in _steps(list(net.parameters()), 5e-3, steps):
        rows = torch.randint(len(own), (256,), generator=generator)
        scores = net(x[rows]).squeeze(-1).masked_fill(~known[rows], -1e9)
        loss = (scores.logsumexp(1) - scores.masked_fill(~right[rows], -1e9).logsumexp(1)).mean()
        loss.backward()
        optimizer.step()
        value = float(loss.detach())
    return value


def fit_scores(scorer: LabelScorer, examples: Sequence[LabelExample], seed: int, steps: int = 2_500) -> float:
    """Trains what stands on the encoder, which is held, on all candidates that answering scores; returns its last loss.

    A batch of `fit` has a few candidates of each question, which answering chooses from `SCORED`.
    """
    network, chooser = scorer.network, random.Random(seed)
    own = [_likeliest(scorer, one) for one in with_heads(scorer, examples) if one.texts]
    likeness = _likeness(scorer, own)
    features, right, known = _padded(own, [one.features for one in own])
    like, _, _ = _padded(own, likeness)
    parameters = [*network.features.parameters(), *network.linear.parameters(), *network.none.parameters(),
                  network.sharpness]  # fmt: skip
    weights, value = torch.tensor([one.weight for one in own]), 0.0
    for step, optimizer in _steps(parameters, 1e-3, steps):
        rows = chooser.sample(range(len(own)), min(64, len(own)))
        kept, good = known[rows].clone(), right[rows].clone()
        for place, row in enumerate(rows):
            if good[place].any() and chooser.random() < FitOptions().dropped:
                places = good[place].nonzero().flatten().tolist()
                gone = sorted(set[int]().union(*(own[row].relations[p] for p in places)))
                lost = {chooser.choice(gone)} if gone else set[int]()
                for p, relations in enumerate(own[row].relations):
                    kept[place, p] &= not (good[place, p] or relations & lost)
                good[place] = False
        scores = network.score(like[rows], features[rows]).masked_fill(~kept, -1e9)
        none = torch.cat([
            none_features(scores[p, kept[p]].detach(), like[row, kept[p]], features[row, kept[p]], own[row].query)
            for p, row in enumerate(rows)
        ])  # fmt: skip
        every = torch.cat([scores, network.none(none)], 1)
        chosen = torch.cat([good, ~good.any(1, keepdim=True)], 1)
        loss = every.logsumexp(1) - every.masked_fill(~chosen, -1e9).logsumexp(1)
        (loss * weights[rows]).mean().backward()
        optimizer.step()
        value = 0.98 * value + 0.02 * float(loss.detach().mean()) if step else float(loss.detach().mean())
        _Log().progress(step, steps, f"steps of the scores, loss {value:.3f}")
    return value


def _steps(parameters: list[nn.Parameter], rate: float, steps: int) -> Iterator[tuple[int, torch.optim.Optimizer]]:
    """Steps of an optimizer whose gradients are empty; the rate falls to 0."""
    optimizer = torch.optim.Adam(parameters, lr=rate)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate * (1 - step / steps)
        optimizer.zero_grad()
        yield step, optimizer


def _padded(
    examples: Sequence[LabelExample], values: Sequence[NDArray[np.float32]]
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Values of candidates [examples, candidates, width], which are right, and which there are."""
    size = max(len(own) for own in values)
    table = torch.zeros(len(values), size, values[0].shape[1])
    right, known = torch.zeros(2, len(values), size, dtype=torch.bool)
    for place, (one, own) in enumerate(zip(examples, values, strict=True)):
        table[place, : len(own)], right[place, : len(own)] = torch.from_numpy(own), torch.from_numpy(one.right)
        known[place, : len(own)] = True
    return table, right, known


@torch.inference_mode()
def _likeliest(scorer: LabelScorer, one: LabelExample) -> LabelExample:
    """An example with the candidates that its features find likeliest, and with the right ones."""
    scores = scorer.network.quick(torch.from_numpy(one.features)).squeeze(-1).numpy()
    kept = set(np.argsort(-scores, kind="stable")[:SCORED].tolist()) | set(np.flatnonzero(one.right)[:2].tolist())
    return _reordered(one, sorted(kept))


def _reordered(one: LabelExample, order: Sequence[int]) -> LabelExample:
    """An example with the candidates at some places, in their order."""
    places = list(order)
    return replace(
        one, texts=[one.texts[p] for p in places], nouns=[one.nouns[p] for p in places],
        relations=[one.relations[p] for p in places], features=one.features[places], right=one.right[places],
        classes=one.classes[places],
    )  # fmt: skip


@torch.inference_mode()
def _likeness(scorer: LabelScorer, examples: Sequence[LabelExample]) -> list[NDArray[np.float32]]:
    """Of each example the likeness of its candidates to the question [candidates, LIKENESS]."""
    results = []
    for start in range(0, len(examples), BLOCK):
        block = examples[start : start + BLOCK]
        encoded = scorer.questions([one.query.text for one in block])
        scorer.known([text for one in block for text in (*one.texts, *one.nouns)])
        for place, one in enumerate(block):
            phrases, nouns = scorer.phrases(one.texts), scorer.phrases(one.nouns)
            results.append(scorer.likeness(encoded, place, phrases, nouns).numpy())
        _Log().progress(start + len(block), len(examples), "questions compared")
    scorer.clear()
    return results


class _Log:
    """A monitor that logs."""

    def progress(self, done: int, total: int, what: str) -> None:
        """Logs every hundredth step."""
        if done % 100 == 0:
            log.info("%d of %d %s", done, total, what)

    def note(self, text: str) -> None:
        """Logs a note."""
        log.info("%s", text)


def _invented(work: Path, seed: int, typed: bool) -> Path:
    out = work / f"invented-{seed}"
    if not out.is_dir():
        file = work / f"invented-{seed}.nt"
        write_graph(file, seed, typed=typed)
        out.mkdir()
        build(Workspace(out), options=KgOptions(files=(str(file),)))
    return out


def _examples(
    scorer: LabelScorer, folder: Path, size: int, seed: int, data: Path | None, hops: int
) -> list[LabelExample]:
    """Examples over one graph with the present scorer's candidates; kept on disk."""
    with KgStore.open(folder) as store:
        graph = LabelGraph(store)
        parser = LabelParser(graph, scorer, hops)
        mentions = folder.with_name(f"{folder.name}-mentions")
        if not mentions.is_dir():
            publish_folder(
                "mentions", mentions, lambda out, scratch: build_mentions(Workspace(out, scratch), kg=folder)
            )
        shares = SHARES if hops > 2 else SHARES.model_copy(update={"three_hops": 0.0})
        rows = make(store, GeneratedQuestionsOptions(size=size, unanswerable=0.2, shares=shares, read_back=0), seed)
        if data is not None:
            _in_other_words(rows, data, seed)
            rows = [*rows, *_lcquad(data, graph)]
        questions = [one for row in rows if (one := _question(row, graph)) is not None]
        linking = LinkingOptions()
        linked = link_some(questions, open_tagger(mentions, folder, linking), linking, random.Random(seed))
        examples, counts = make_examples(parser, linked, seed)
    log.info("%s: %s", folder.name, json.dumps(counts))
    return examples


def _question(row: dict[str, Any], graph: LabelGraph) -> tuple[Question, str | None, float] | None:
    if row.get("answerable") is False:
        return question_without_answer(row, graph), None, 1.0
    try:
        keys = elements(parse(row["s_expression"])).entities
    except FormError:
        return None
    ids = graph.memory.know(keys)
    if len(ids) < len(keys):
        return None
    question = Question(row["id"], row["question"], topic_keys=tuple(ids), topic_entities=tuple(ids.values()))
    return question, row["s_expression"], 2.0 if row.get("human") else 1.0


def _lcquad(data: Path, graph: LabelGraph) -> list[dict[str, Any]]:
    """Questions of LC-QuAD 2 whose entities and relations the graph has, with the forms of their queries."""
    path, rows = data / "lcquad2" / "ibm_genrl" / "lcquad2_test_validated.jsonl", []
    found = [(row["q_id"], row["text"], row["query"]) for row in _json_rows(path) if row["f1"] == 1]
    path = data / "lcquad2_train" / "lcquad2_questions.jsonl"
    found += [
        (row["id"], row["question"], row["sparql_wikidata"]) for row in _json_rows(path) if row["split"] == "train"
    ]
    for name, text, query in found:
        if not text or "{" in text:  # a template that nobody put in words
            continue
        try:
            form = _with_types(from_sparql(query), graph)
        except (Outside, FormError, ValueError):
            continue
        used = elements(form)
        if not used.entities or len(graph.memory.know(used.entities)) < len(used.entities):
            continue
        if any(key not in graph.memory.relation_ids for key in used.relations):
            continue
        if isinstance(form, (Count, Holds)) or len(graph.answering.nodes(form)):
            rows.append({"id": f"lcquad2-{name}", "question": text, "s_expression": str(form), "human": True})
    log.info("%d questions of LC-QuAD 2", len(rows))
    return rows


def _in_other_words(rows: list[dict[str, Any]], data: Path, seed: int) -> None:
    """Puts other names of its relation into some questions: nouns by which Wikidata calls it, too."""
    chooser, names = random.Random(f"names {seed}"), {}
    for row in _json_rows(data / "relation_names" / "wikidata_properties.jsonl"):
        nouns = [name for name in row.get("aliases") or () if name.isascii() and not _NO_NOUN.search(name)]
        names[row["id"]] = row["label"], [name for name in nouns if not phrase(name).is_verb]
    for row in rows:
        if row.get("answerable") is False or chooser.random() > RENAMED:
            continue
        for key in sorted(elements(parse(row["s_expression"])).relations):
            label, others = names.get(key, ("", []))
            if others:
                whole = rf"\b{re.escape(label)}(?=s?\b)"
                row["question"] = re.sub(whole, chooser.choice(others), row["question"], count=1)


def _json_rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _with_types(form: Form, graph: LabelGraph) -> Form:
    """The form in which what is an instance of a type is written as the type."""
    match form:
        case Join(path=(Step(relation="P31", inverse=False),), of=Entity(key=key)) if key in graph.type_of_key:
            return Class(key)
        case And(parts=parts):
            return And(tuple(_with_types(part, graph) for part in parts))
    return form


if __name__ == "__main__":
    torch.set_num_threads(2)
    main()
