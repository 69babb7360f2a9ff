"""`--help` in the language of the person at the terminal.

Decorators and docstrings of the commands are English. Before Typer prints them, each paragraph of a help text, and the
titles of panels, are replaced by their translations in `pipelines/messages/zh/help.yaml`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import typer
from typer.core import TyperArgument, TyperGroup

from pipelines.messages.translation import (
    ENGLISH,
    LANGUAGES,
    in_language,
    language,
    message,
    preferred_language,
    template,
)

EXAMPLE = "Example: "
"""What the last paragraph of a command's help begins with; the command line after it is not translated."""
PUNCTUATION = re.compile("[，。；：、]")
"""What a line of Chinese may break after: Typer's tables break lines at spaces only, and cut what is longer."""


class LocalizedGroup(TyperGroup):
    """A group of commands whose help, and that of its commands, is in the current language."""

    def main(self, *arguments: Any, **options: Any) -> Any:
        """Run a command line; until `--language` is read, the language is that of the locale."""
        with in_language(preferred_language()):
            return super().main(*arguments, **options)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help of the group itself."""
        _localize(self, ctx)
        super().format_help(ctx, formatter)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a name; None where there is none."""
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            _localize(command, ctx)
        return command


def choose_language(context: typer.Context, name: str | None) -> None:
    """Write in the language `name`, if one is given, until the command ends. Raises BadParameter for an unknown one."""
    if name is None:
        return
    if name not in LANGUAGES:
        raise typer.BadParameter(f"{name!r} is none of: {', '.join(LANGUAGES)}", param_hint="--language")
    context.with_resource(in_language(name))


def help_texts(command: Any, context: typer.Context) -> Iterator[str]:
    """Every text of the help of a command and of those below it, as it is looked up."""
    yield from _paragraphs(command.help)
    yield _panel(command, "Commands")
    for parameter in command.get_params(context):
        yield from _paragraphs(getattr(parameter, "help", None))
        yield _panel(parameter, _kind(parameter))
    for other in getattr(command, "commands", {}).values():
        yield from help_texts(other, context)


def _localize(command: Any, context: Any) -> None:
    if language() == ENGLISH:
        return
    command.help = _translated(command.help)
    command.rich_help_panel = template(_panel(command, "Commands"))
    for parameter in command.get_params(context):
        if getattr(parameter, "help", None):
            parameter.help = PUNCTUATION.sub(r"\g<0> ", _translated(parameter.help) or "").rstrip()
        parameter.rich_help_panel = template(_panel(parameter, _kind(parameter)))


def _panel(owner: Any, default: str) -> str:
    """Title of the panel in which Typer lists a command, an argument or an option."""
    title = owner.rich_help_panel if isinstance(getattr(owner, "rich_help_panel", None), str) else None
    return title or default


def _kind(parameter: Any) -> str:
    return "Arguments" if isinstance(parameter, TyperArgument) else "Options"


def _translated(text: str | None) -> str | None:
    return None if text is None else "\n\n".join(map(_paragraph, _split(text)))


def _paragraph(text: str) -> str:
    if text.startswith(EXAMPLE):
        return message("Example: {command}", command=text.removeprefix(EXAMPLE))
    return template(text)


def _paragraphs(text: str | None) -> Iterator[str]:
    yield from (one for one in _split(text or "") if not one.startswith(EXAMPLE))


def _split(text: str) -> list[str]:
    """The paragraphs of a text, each in one line."""
    return [" ".join(part.split()) for part in inspect.cleandoc(text).split("\n\n") if part.strip()]
