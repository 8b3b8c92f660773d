"""Every error that kgqa raises on purpose, and what it means for the exit code.

    KgqaError                        exit 1: it failed, and the message says how to go on
    ├── InputError                   exit 2: what the user gave cannot be used as it is
    │   ├── ConfigError              a profile, a key or a value
    │   ├── KgInputError             a graph file
    │   ├── QuestionFileError        a question or prediction file
    │   ├── OutputError              a place to write to: it holds something, is an input, or cannot be written
    │   ├── ModelError               a model folder or id
    │   └── FormError                a logical form, also a ValueError
    ├── ArtifactError                an artifact is missing, damaged or of another kind
    │   └── StorageError             the home cannot be written (full, read-only)
    ├── GraphMismatch                two things were made for different graphs
    ├── EndpointError                a language-model endpoint is down or refuses
    ├── BudgetReached                llm.budget leaves no room for the next request; what is done is kept
    ├── FormTimeout              a logical form took longer than it may
    ├── QuestionTimeout          so did reading a question, or searching the graph for its answer
    ├── FailedSets                   some question sets of a run failed; the others are done
    ├── WorkerError                  a stage that another machine is to make cannot be made there
    └── TrainingError                training cannot start or diverged

A message names the offending value and the way out, in one or two sentences.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

PASSWORD = re.compile(r"(\w:/{1,2}[^/\s:@]*:)[^/\s]+@")
"""An address with a password."""


_LONG = re.compile(r"""(?<!\w)(?:'([^'\n]{120})[^'\n]{40,}'|"([^"\n]{120})[^"\n]{40,}")(?!\w)""")
"""A quoted name that is too long for a message."""


class KgqaError(Exception):
    """Something failed in a way that we foresaw; the message says what to do, with long names cut."""

    exit_code = 1

    def __str__(self) -> str:
        return _LONG.sub(lambda name: f"'{name[1] or name[2]}…'", super().__str__())


class InputError(KgqaError):
    """What the user gave cannot be used as it is."""

    exit_code = 2


class ConfigError(InputError):
    """A profile, key or value is unknown or out of range."""


class KgInputError(InputError):
    """A graph file is missing, empty, unreadable or mostly rejected."""


class QuestionFileError(InputError):
    """A question or prediction file is missing or malformed."""


class OutputError(InputError):
    """A place to write to holds something else, is an input, belongs to a home or cannot be written."""


class ModelError(InputError):
    """A model folder or id does not hold a model that we can load."""


class FormError(InputError, ValueError):
    """A logical form cannot be read, or does not fit this graph."""


class ArtifactError(KgqaError):
    """An artifact is missing, damaged or of another kind."""


class StorageError(ArtifactError):
    """The home cannot be written: full, read-only or not a folder."""


class GraphMismatch(KgqaError):
    """Two things were made for different graphs."""


class EndpointError(KgqaError):
    """A language-model endpoint is down, refuses us or does not speak the protocol."""


class BudgetReached(KgqaError):
    """The limits of `llm.budget` leave no room for the next request; what was answered before is kept.

    limit: the field of `llm.budget` that is reached.  spent: how much of it is, in words.  needed: what the next
    request may cost at most.  done, left: items of the work that stopped, where they are known.
    """

    def __init__(self, limit: str, spent: str, needed: str, done: int | None = None, left: int | None = None) -> None:
        super().__init__(limit, spent, needed, done, left)
        self.limit, self.spent, self.needed, self.done, self.left = limit, spent, needed, done, left

    def __str__(self) -> str:
        items = "" if self.left is None else f"; {self.done:,} answers are there and kept, {self.left:,} are left"
        return (
            f"the budget is reached: {self.spent} are spent and the next request may need {self.needed}{items}; "
            f"raise llm.budget.{self.limit} and run the same command to go on"
        )


class ServerBusy(KgqaError):
    """A server that answers questions has as many as it may, is not ready, or is stopping."""


class FormTimeout(KgqaError):
    """A logical form took longer than it may on this graph."""


class QuestionTimeout(KgqaError):
    """Reading a question, or searching the graph for its answer, took longer than it may."""


class FailedSets(KgqaError):
    """Some question sets of a run failed; the others are done and in its table.  run_id: of the run, where any is."""

    def __init__(self, message: str, run_id: str | None = None) -> None:
        super().__init__(message)
        self.run_id = run_id


class WorkerError(KgqaError):
    """A stage that a deployment is to make was not made there: no server, another home, other code, or it failed."""


class TrainingError(KgqaError):
    """Training cannot start, or diverged."""


def nearest(value: str, known: Iterable[str], *, cutoff: float = 0.5) -> str:
    """A hint such as `; did you mean 'atlas'?`, or an empty string when nothing is near."""
    names = list(known)
    found = difflib.get_close_matches(value, names, n=1, cutoff=cutoff)
    if not found:
        folded = {name.casefold(): name for name in names}
        lower = difflib.get_close_matches(value.casefold(), list(folded), n=1, cutoff=cutoff)
        found = [folded[lower[0]]] if lower else []
    return f"; did you mean '{found[0]}'?" if found else ""


def without_passwords(text: str) -> str:
    """The text with `…` in place of the passwords of its addresses: what users type is printed in messages.

    >>> without_passwords("postgresql://me:secret@db/mlflow")
    'postgresql://me:…@db/mlflow'
    """
    return PASSWORD.sub(r"\1…@", text)
