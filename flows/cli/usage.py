"""Commands that refuse values which no command can use, and name every value that they refuse."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_type_hints

import typer
from typer.core import TyperCommand

from flows.cli._options import CsvOption, HomeOption, JsonOption, VerboseOption

SHOWN = 80
"""Most characters of a value that a message shows."""
SHARED: dict[str, tuple[Any, Any]] = {
    "home": (HomeOption, None),
    "as_json": (JsonOption, False),
    "as_csv": (CsvOption, False),
    "verbose": (VerboseOption, False),
}
"""Type and default of the options that a `session` stands for."""
MAY_BE_EMPTY = frozenset({"base"})
"""Parameters for which an empty value means something."""


class CheckedCommand(TyperCommand):
    """A command that refuses empty values and bytes that are not UTF-8 before anything is read.

    An empty path would be the working folder (`--out "$UNSET"`), and nothing behind the command can write half a
    character.  What a value breaks is said with the value.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for parameter in self.params:
            if text := getattr(parameter, "help", None):  # what stands in brackets is text, not Rich's markup
                parameter.help = re.sub(r"\[(?=[a-z#/@])", r"\[", text)  # type: ignore[attr-defined]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The remaining words.  Raises BadParameter that names the parameter and its value."""
        if ctx.resilient_parsing:  # a shell completes a line that is not written yet
            return super().parse_args(ctx, args)
        given, _, _ = self.make_parser(ctx).parse_args(args=list(args))
        for parameter in self.get_params(ctx):
            for value in _texts(given.get(str(parameter.name))):
                if fault := _fault(str(parameter.name), value):
                    raise typer.BadParameter(fault, ctx=ctx, param=parameter)  # type: ignore[arg-type]
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as fault:
            errors: Callable[[], list[dict[str, Any]]] | None = getattr(fault.__cause__, "errors", None)
            if errors is not None:
                fault.message += f"; it is {shown(str(errors()[0]['input']))}"
            raise


class CommandApp(typer.Typer):
    """A Typer whose commands are `CheckedCommand`s; see `with_groups` for parameters that stand for several options."""

    def command(self, name: str | None = None, **options: Any) -> Any:  # type: ignore[override]
        """As that of Typer."""
        register = super().command(name, **{"cls": CheckedCommand, **options})

        def decorate(function: Callable[..., None]) -> Callable[..., None]:
            register(with_groups(function))
            return function

        return decorate


def with_groups(function: Callable[..., None]) -> Callable[..., None]:
    """A command with an option in place of each field of its parameters that are dataclasses.

    The options of `session` are those that its class names, and come last.
    """
    hints = get_type_hints(function, include_extras=True)
    hints.pop("return", None)
    signature = inspect.signature(function)
    groups: dict[str, tuple[Any, tuple[str, ...]]] = {}
    options: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        kind = hints[name]
        if name == "session":
            groups[name] = (kind, kind.options)
        elif is_dataclass(kind):
            groups[name] = (kind, tuple(field.name for field in fields(kind)))
            options += _options_of(kind)
        else:
            options.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=kind))
    if not groups:
        return function
    options += [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=SHARED[name][1], annotation=SHARED[name][0])
        for name in (hints["session"].options if "session" in hints else ())
    ]

    @functools.wraps(function)
    def command(**given: Any) -> None:
        records = {group: kind(**{name: given.pop(name) for name in names}) for group, (kind, names) in groups.items()}
        function(**records, **given)

    command.__signature__ = signature.replace(parameters=options)  # type: ignore[attr-defined]
    command.__annotations__ = {option.name: option.annotation for option in options}
    del command.__wrapped__  # type: ignore[attr-defined]
    return command


def _options_of(group: Any) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        default = inspect.Parameter.empty if field.default is MISSING else field.default
        yield inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[field.name]
        )


def shown(value: str, most: int = SHOWN) -> str:
    """A value in quotes, in one line, with escapes for what cannot be printed; one over `most` is cut in its middle."""
    if len(value) > most:
        value = f"{value[: most // 2]}…{value[-most // 4 :]}"
    return "'" + "".join(sign if sign.isprintable() else _escaped(sign) for sign in value) + "'"


def _escaped(sign: str) -> str:
    """Bytes that are no text as `\\xff`, other characters as Python writes them."""
    return f"\\x{ord(sign) - 0xDC00:02x}" if "\udc80" <= sign <= "\udcff" else ascii(sign)[1:-1]


def _fault(name: str, value: str) -> str | None:
    if not value and name not in MAY_BE_EMPTY:
        return "it is empty (''); give a value, or leave it out"
    if any("\ud800" <= sign <= "\udfff" for sign in value):
        return f"{shown(value)} is not UTF-8; rename the file, or write it in UTF-8"
    return None


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
