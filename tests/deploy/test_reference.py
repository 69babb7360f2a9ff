"""The generated reference: pages of the commands in every language, and the page of the package `cursus`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import typer

import cursus
from deploy.site import api, commands
from flows.cli.app import app


def every_command(command: Any, words: str = "cursus") -> Iterator[tuple[str, Any]]:
    """The words and the object of every command that is no group."""
    for name, one in getattr(command, "commands", {}).items():
        yield from every_command(one, f"{words} {name}")
    if not hasattr(command, "commands"):
        yield words, command


@cache
def page_of(language: str) -> str:
    return commands.render(language)


COMMANDS = dict(every_command(typer.main.get_command(app)))


def section(page: str, title: str) -> str:
    """The text below a title, up to the next one of its level."""
    level = re.search(rf"^(#+) `{re.escape(title)}`$", page, re.MULTILINE)
    assert level is not None, f"no title {title}"
    return re.split(rf"^#{{1,{len(level[1])}}} ", page[level.end() :], maxsplit=1, flags=re.MULTILINE)[0]


@pytest.mark.parametrize("language", commands.PAGES)
def test_the_reference_of_the_commands_is_fresh(language: str) -> None:
    written = commands.PAGES[language].read_text(encoding="utf-8")
    assert written == page_of(language), "run: python -m deploy.site.commands"


def test_the_reference_of_the_package_is_fresh() -> None:
    assert api.PAGE.read_text(encoding="utf-8") == api.render(), "run: python -m deploy.site.api"


@pytest.mark.parametrize("language", commands.PAGES)
@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_is_there_with_all_its_parameters(words: str, language: str) -> None:
    text = section(page_of(language), words)
    for one in COMMANDS[words].params:
        name = one.opts[0] if one.param_type_name == "option" else one.name.upper()
        assert re.search(rf"^\| `{name}\b.* \|$", text, re.MULTILINE), name
    sentences = re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.DOTALL)
    assert bool(re.search("[\u4e00-\u9fff]", sentences)) == (language == "zh")


def test_what_is_required_what_is_default_and_what_may_be_chosen_is_said() -> None:
    page = page_of("en")
    export, compress = section(page, "cursus export"), section(page, "cursus compress")
    assert "`cursus export --to PATH [OPTIONS] [MODEL]`" in export and "| `--to PATH` | required |" in export
    assert "| `--threads N` | `1` | Processor threads for serving. (from 1) |" in export
    assert "(`all`, `batch1`, `batch32`)" in export
    assert 'cursus compress classify --within "10 MB, 5 ms, -2 points" --budget 20m\n' in compress
    assert "Exit status 1 where no form is within the limits." in compress
    assert "退出状态为 1" in section(page_of("zh"), "cursus compress")
    assert "](serving.md)" in export and "](promotion.md)" in section(page, "cursus promote")


def test_the_package_is_there_with_signatures_fields_and_methods() -> None:
    page = api.render()
    for name in cursus.__all__:
        text = section(page, f"cursus.{name}")
        value = getattr(cursus, name)
        documented = inspect.cleandoc(value.__doc__).splitlines()[0]
        assert documented in text
        if inspect.isfunction(value):
            assert all(one in text for one in inspect.signature(value).parameters)
        members = vars(value) if inspect.isclass(value) else {}
        methods = [one for one in members if not one.startswith("_") and inspect.isfunction(members[one])]
        assert all(f"def {one}(" in text for one in methods)
    assert "| `answer` | `Answer` | A label;" in section(page, "cursus.Prediction")
    assert page.index("## `cursus.run`") < page.index("## `cursus.Run`") < page.index("## `cursus.load`")
