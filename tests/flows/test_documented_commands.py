"""What the pages tell a reader to type exists: commands with their options, targets of make, modules of Python."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import dropwhile
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.exceptions import TyperException

from flows.cli.app import app
from tests.steps import ROOT

PAGES = sorted(
    str(path.relative_to(ROOT))
    for pattern in ("*.md", "docs/*.md", "docs/zh/*.md")
    for path in ROOT.glob(pattern)
    if path.name not in ("CHANGELOG.md", "journal.md")  # what was true when it was written
)
OTHER_PROGRAMS = {
    "--node-ip-address": "ray",
    "--num-cpus": "ray",
    "--type": "prefect",
}
"""Option that a sentence names → its program, which is not cursus."""
FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
SEPARATOR = re.compile(r"\|\|?|&&|;|\$\(|(?<=\w): ")
"""What a command may follow on a line of a shell, or of its output."""
COMMENT = re.compile(r"(^|\s)#.*")
ELIDED = "…"


@cache
def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def shell(page: str) -> Iterator[str]:
    """The lines of shell blocks and of what they print, continued ones joined."""
    for language, block in FENCED.findall(text_of(page)):
        if language in ("", "sh"):
            yield from re.sub(r"\\\n\s*", " ", block).splitlines()


def sentences(page: str) -> list[str]:
    """The code of sentences."""
    return [" ".join(code.split()) for code in INLINE.findall(FENCED.sub("", text_of(page)))]


def invocations(lines: Iterable[str]) -> list[list[str]]:
    """The words after `cursus` of every command in `lines`."""
    commands = []
    for line in lines:
        for words in _commands(line):
            if len(words) > 1 and Path(words[0]).name == "cursus":
                commands.append(words[1:])
    return commands


def _commands(line: str) -> Iterator[list[str]]:
    """The commands of a line, without the variables set before each."""
    parts = []
    for quoted in re.split(r"(\"[^\"]*\"|'[^']*')", COMMENT.sub("", line)):
        parts.append(quoted if quoted[:1] in ("'", '"') else SEPARATOR.sub("\n", quoted))
    for part in "".join(parts).split("\n"):
        try:
            words = shlex.split(part)
        except ValueError:  # a quotation mark of a sentence
            words = part.split()
        yield list(dropwhile(lambda word: re.match(r"\w+=", word), words))


@cache
def program() -> Any:
    return typer.main.get_command(app)


def resolve(words: Sequence[str]) -> tuple[Any, list[str], list[str]]:
    """The command that words begin with, the words after it, and which of all words cursus does not know."""
    command, rest, known, unknown = program(), list(words), options(program()), []
    while rest and hasattr(command, "commands"):
        word = rest.pop(0)
        if word.startswith("-"):
            unknown += [] if word in known else [word]
            rest = rest[1:] if word == "--language" else rest
        elif word in command.commands:
            command = command.commands[word]
            known |= options(command)
        elif word != ELIDED:
            return command, rest, [*unknown, word]
        else:
            return command, rest, unknown
    given = [word.partition("=")[0] for word in rest if word.startswith("-") and ELIDED not in word]
    return command, rest, [*unknown, *(word for word in given if word not in known)]


def misuse(words: Sequence[str]) -> str | None:
    """What the command answers to a complete command line: a missing argument, a value of another type."""
    command, rest, _ = resolve(words)
    if hasattr(command, "commands"):
        return None
    try:
        command.make_context(command.name, rest)
    except typer.Exit:  # --help
        return None
    except TyperException as error:
        return str(error.format_message())
    return None


def options(command: Any) -> set[str]:
    parameters = [one for one in command.params if one.param_type_name == "option"]
    return {"--help", *(name for one in parameters for name in (*one.opts, *one.secondary_opts))}


def all_options() -> set[str]:
    """The options of every command."""
    commands, names = [program()], set()
    while commands:
        command = commands.pop()
        names |= options(command)
        commands += getattr(command, "commands", {}).values()
    return names


@pytest.mark.parametrize("page", PAGES)
def test_every_cursus_command_exists_with_its_options(page: str) -> None:
    named = invocations([*shell(page), *sentences(page)])
    unknown = {" ".join(words): names for words in named if (names := resolve(words)[2])}
    assert not unknown, f"{page} names what cursus does not know"


@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_a_block_is_complete(page: str) -> None:
    named = invocations(shell(page))
    wrong = {" ".join(words): error for words in named if (error := misuse(words))}
    assert not wrong, f"{page} has commands that cursus refuses"


@pytest.mark.parametrize("page", PAGES)
def test_every_option_of_a_sentence_is_one_of_cursus(page: str) -> None:
    named = {code.split()[0].partition("=")[0] for code in sentences(page) if code.startswith("--")}
    unknown = named - all_options() - set(OTHER_PROGRAMS)
    assert not unknown, f"{page} names options that no command has; OTHER_PROGRAMS lists those of others"


@pytest.mark.parametrize("page", PAGES)
def test_every_target_of_make_exists(page: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", text_of("Makefile"), re.MULTILINE))
    lines = [*shell(page), *sentences(page)]
    named = [words[1:] for line in lines for words in _commands(line) if words[:1] == ["make"]]
    unknown = {word for words in named for word in words if re.fullmatch("[a-z-]+", word)} - targets
    assert not unknown, f"{page} names targets that the Makefile lacks"


@pytest.mark.parametrize("page", PAGES)
def test_every_module_of_the_project_exists(page: str) -> None:
    lines = [*shell(page), *sentences(page)]
    named = {name for line in lines for name in re.findall(r"python -m ([\w.]+)", line)}
    paths = [ROOT / name.replace(".", "/") for name in named if (ROOT / name.partition(".")[0]).is_dir()]
    unknown = [path for path in paths if not (path.with_suffix(".py").is_file() or (path / "__main__.py").is_file())]
    assert not unknown, f"{page} names modules that cannot be run"


def test_the_searches_find_what_is_wrong() -> None:
    assert resolve(["rn"])[2] == ["rn"]
    assert resolve(["run", "--smok", "--until", "general"])[2] == ["--smok"]
    assert resolve(["store", "collect"])[2] == ["collect"]
    assert resolve(["--language", "zh", "store", "gc", "--days", "3", "--delete"])[2] == []
    assert misuse(["export", "classify"]) and misuse(["run", "a", "b"]) and misuse(["run", "--threads", "many"])
    assert misuse(["run", "--help"]) is None and misuse(["run", "bert", "--until", "general"]) is None
    line = "A=1 echo '{\"a\": 1}' | .venv/bin/cursus predict --json && make up  # one; two"
    assert list(_commands(line)) == [["echo", '{"a": 1}'], [".venv/bin/cursus", "predict", "--json"], ["make", "up"]]
    assert len(invocations(shell("docs/tutorial.md"))) > 10
    assert ["predict", "--json", "--model", ELIDED] in invocations(sentences("docs/training.md"))
