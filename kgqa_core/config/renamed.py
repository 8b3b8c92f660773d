"""Keys of a profile that had another name before: refused in users' files with the new name, upgraded in records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kgqa_core.config.base import Options
from kgqa_core.config.parsing import RngOptions

RENAMED = {
    "retriever": "rigel",
    "operator": "operation_classifier",
    "retrieval.kaping": "kaping",
    "rewriter.warmup": "rewriter.warmup_ratio",
    "rewriter.batch_size": "rewriter.global_batch_size",
    "rewriter.micro_tokens": "rewriter.micro_batch_tokens",
    "rewriter.rank": "rewriter.lora_rank",
    "rewriter.alpha": "rewriter.lora_alpha",
    "rewriter.dropout": "rewriter.lora_dropout",
    "rewriter.measure_steps": "rewriter.eval_steps",
    "corpus.imported": "corpus.alpaca_file",
    **{f"parsing.{name}": f"parsing.rng.{name}" for name in RngOptions.model_fields},
    "parsing.hard": "parsing.rng.hard_negatives",
    "parsing.hard_epochs": "parsing.rng.hard_negative_epochs",
    "parsing.kept": "parsing.rng.num_forms",
    "parsing.pruned": "parsing.rng.preselected_forms",
    "parsing.missing": "parsing.rng.missing_relation_rate",
    "parsing.generator.use": "parsing.rng.generator.enabled",
    "parsing.generator.executable": "parsing.rng.generator.executable_first",
    "parsing.generator.forms": "parsing.rng.generator.input_forms",
    "parsing.decode.failed": "parsing.decode.on_empty_result",
    "parsing.decode.missing": "parsing.decode.missing_relation_rate",
    "parsing.decode.measured_steps": "parsing.decode.comparison_steps",
    "parsing.decode.repeats": "parsing.decode.questions_per_wording",
    "symbolic.told": "symbolic.most_results_shown",
    "symbolic.seconds": "symbolic.timeout_seconds",
    "symbolic.facts": "symbolic.keep_facts",
    "symbolic.dates": "symbolic.date_conditions",
    "answerability.parts": "answerability.drop_shares",
    "answerability.full": "answerability.full_zero_shot",
    "answerability.largest": "answerability.largest_drop_share",
    "abstention.training": "abstention.training_questions",
    "abstention.strength": "abstention.prior_precision",
    "kaping.most_triples": "kaping.max_triples",
    "relation_ranking.most_relations": "relation_ranking.max_relations",
    "corpus.most_triples": "corpus.max_triples",
    "symbolic.most_forms": "symbolic.max_forms",
    "symbolic.most_answers": "symbolic.max_answers",
    "gcr.most_edges": "gcr.max_edges",
    "ltgen.sampling.least_triples": "ltgen.sampling.min_triples",
    "ltgen.sampling.most_triples": "ltgen.sampling.max_triples",
    "ltgen.sampling.most_answers": "ltgen.sampling.max_answers",
    "parsing.rng.most_paths": "parsing.rng.max_paths",
    "parsing.rng.most_forms": "parsing.rng.max_forms",
    "parsing.decode.most_actions": "parsing.decode.max_actions",
    "questions.generated.most_answers": "questions.generated.max_answers",
    "questions.generated.least_per_relation": "questions.generated.min_per_relation",
    "questions.generated.most_ties": "questions.generated.max_ties",
    "questions.generated.most_random_hit": "questions.generated.max_random_hit",
    "questions.generated.most_answer_share": "questions.generated.max_answer_share",
    "parsing.most_paths": "parsing.rng.max_paths",
    "parsing.most_forms": "parsing.rng.max_forms",
}
"""Old key or section → new one; of several that begin a key the longest counts."""

QUESTION_SETS = {("questions",), ("further_questions",), ("trained_on",)}
"""Keys whose value may list sections of question sets."""

REMOVED: Mapping[str, Any] = {
    "abstention.prior_precision": 1.0,
    "answerability.least_exact": 0.8,
    "answerability.schema_share": 0.9,
    "label_parser.adapted_layers": 1,
    "label_parser.start_weight": 0.7,
    "ltgen.sampling.lookups": 20_000,
    "ltgen.writing.questions_per_entity": 3,
    "ltgen.writing.sheet_share": 0.03,
    "parsing.decode.comparison_steps": 2,
    "parsing.decode.rho_weight": 1.0,
    "parsing.rng.executed_forms": 30,
    "parsing.rng.middle_types": False,
    "parsing.rng.result_weights": "dev",
    "parsing.rng.rho_weight": 1.0,
    "parsing.rng.type_conditions": "auto",
    "relation_ranking.amr_layers": 2,
    "retrieval.min_hop_attention": 0.05,
    "symbolic.keep_facts": True,
    "symbolic.most_results_shown": 20,
    "transfernet.hop_loss": 0.01,
    "transfernet.positive_weight": 10.0,
}
"""Options that are gone → the value that always counts now; a record may name it."""

GONE = ("operation_classifier", "symbolic.date_conditions", "symbolic.margin", "symbolic.max_forms")
"""Sections and options of the answerers that `auto` took the place of; a record may hold any value."""


def new_name(key: str) -> str:
    """The name that a dotted key has now; its own where it was not renamed.

    >>> new_name("retriever.hops"), new_name("parsing.decode.missing"), new_name("parsing.rng.hops")
    ('rigel.hops', 'parsing.decode.missing_relation_rate', 'parsing.rng.hops')
    """
    parts = key.split(".")
    for length in range(len(parts), 0, -1):
        new = RENAMED.get(".".join(parts[:length]))
        if new is not None:
            return ".".join([new, *parts[length:]])
    return key


def old_names(keys: Iterable[str]) -> list[str]:
    """The names that dotted keys had before they were renamed."""
    pairs = ((key, old, new) for key in keys for old, new in RENAMED.items())
    return [old + key.removeprefix(new) for key, old, new in pairs if key == new or key.startswith(f"{new}.")]


def upgrade(profile: Mapping[str, Any]) -> dict[str, Any]:
    """The nested mapping of a profile that an earlier version recorded, under the names that keys have now."""
    return _without_removed(move_renamed(profile)[0])


def _without_removed(tree: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """A nested mapping without the options of GONE, and those of REMOVED that had the value that counts now."""
    return {
        key: _without_removed(value, f"{above}{key}.") if isinstance(value, Mapping) else value
        for key, value in tree.items()
        if f"{above}{key}" not in GONE and value != REMOVED.get(f"{above}{key}", ...)
    }


def move_renamed(profile: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """A nested mapping under the names of now, and old → new of the keys that were renamed, in order.

    Where both names are given the new one counts.
    """
    moved: dict[str, str] = {}
    tree: dict[str, Any] = {}
    leaves = [(path, value, _renamed(path)) for path, value in _leaves(profile)]
    for path, value, target in sorted(leaves, key=lambda leaf: leaf[0] == leaf[2]):
        if isinstance(value, list | tuple) and path in QUESTION_SETS:
            sets = [move_renamed({"questions": options}) for options in value]
            value = [options["questions"] for options, _ in sets]
            moved |= {old: new for _, renames in sets for old, new in renames.items()}
        if path != target:
            moved[".".join(path)] = ".".join(target)
        node = tree
        for part in target[:-1]:
            if not isinstance(node.get(part), dict):
                node[part] = {}
            node = node[part]
        node[target[-1]] = value
    return tree, moved


def _renamed(path: tuple[Any, ...]) -> tuple[Any, ...]:
    key = ".".join(path) if all(isinstance(part, str) for part in path) else ""
    new = new_name(key)
    return path if new == key else tuple(new.split("."))


def _leaves(tree: Mapping[Any, Any], path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Values of a nested mapping by path; an empty mapping is a value."""
    for key, value in tree.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, (*path, key))
        else:
            yield (*path, key), value


def recorded_options(section: str, options: Options) -> dict[str, Any]:
    """The decisive options of a section under their first names.

    These stand inside artifacts, whose digests a rename must not change.
    """
    old = {new: name for name, new in RENAMED.items()}
    named = {key: value for key, value in REMOVED.items() if key.rpartition(".")[0] == section}
    named |= {f"{section}.{name}": value for name, value in options.decisive().items()}
    return {old.get(key, key).rpartition(".")[2]: value for key, value in named.items()}
