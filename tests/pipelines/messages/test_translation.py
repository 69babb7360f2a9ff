"""Sentences in the reader's language: which language it is, and that no translation is missing, stale or broken."""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Iterator
from functools import cache

import pytest
from typer import Context
from typer.main import get_command

from flows.cli.app import app
from flows.cli.localized_help import help_texts
from pipelines.messages.translation import (
    LANGUAGE_VARIABLE,
    LANGUAGES,
    LOCALE_VARIABLES,
    accepted_language,
    in_language,
    language,
    message,
    preferred_language,
    translations,
)
from pipelines.recipe.systems import read_systems
from pipelines.reports.elements.translated_templates import template_sentences, translating_environment
from tests.steps import ROOT

ROOMS = ("cursus", "flows", "tasks", "pipelines")
FUNCTIONS = {"message", "template", "translatable"}
OTHERS = [name for name in LANGUAGES if name != "en"]


def sentences(tree: ast.AST) -> Iterator[str]:
    """The sentences that a module hands to `message`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS and node.args:
            yield from (
                one.value
                for one in ast.walk(node.args[0])
                if isinstance(one, ast.Constant) and isinstance(one.value, str) and not _is_key(node.args[0], one)
            )


def _is_key(tree: ast.AST, constant: ast.Constant) -> bool:
    """Whether a string picks a sentence (`NAMES[key]`, `one.get("x")`) and is not one."""
    keys = [node.slice for node in ast.walk(tree) if isinstance(node, ast.Subscript)]
    keys += [one for node in ast.walk(tree) if isinstance(node, ast.Call) for one in node.args]
    keys += [one for node in ast.walk(tree) if isinstance(node, ast.Compare) for one in (node.left, *node.comparators)]
    return any(constant is one for one in keys)


@cache
def written() -> tuple[frozenset[str], frozenset[str]]:
    """What is handed to `message` as it stands, and all strings of the code, among which are its other sentences."""
    handed, strings = set(), set()
    environment = translating_environment()
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            handed.update(sentences(tree))
            strings.update(
                one.value for one in ast.walk(tree) if isinstance(one, ast.Constant) and isinstance(one.value, str)
            )
        for path in (ROOT / room).rglob("*.html"):
            handed.update(template_sentences(environment, path.read_text(encoding="utf-8")))
    command = get_command(app)
    handed.update(help_texts(command, Context(command)))
    # the list of recipes in README names the sections of the list of systems
    sections = {re.sub(r"^[A-Z]\. ", "", section) for section in read_systems(ROOT / "recipes")}
    return frozenset(handed), frozenset(strings | handed | sections)


def placeholders(sentence: str) -> set[str]:
    """Names of the values that fill in a sentence: `{day.year}` and `{day:%B}` are `day`."""
    return {re.split(r"[.\[]", name)[0] for _, name, _, _ in string.Formatter().parse(sentence) if name}


@pytest.mark.parametrize("name", OTHERS)
def test_no_translation_is_missing(name: str) -> None:
    handed, _ = written()
    assert len(handed) > 5
    assert not sorted(handed - set(translations(name))), f"add them to pipelines/messages/{name}/"


@pytest.mark.parametrize("name", OTHERS)
def test_no_translation_is_stale(name: str) -> None:
    _, strings = written()
    spoken = strings | {one.replace("_", " ") for one in strings}  # names of components: `text_classification`
    assert not sorted(set(translations(name)) - spoken), "no line of the code has these sentences any more"


@pytest.mark.parametrize("name", OTHERS)
def test_translations_use_the_values_of_their_sentence(name: str) -> None:
    wrong = {english: own for english, own in translations(name).items() if placeholders(own) - placeholders(english)}
    assert not wrong
    counted = {
        english: own
        for english, own in translations(name).items()
        if placeholders(english) - placeholders(own) - {"metric", "s"}  # a table's head may name the metric; no plurals
    }
    assert not counted, "a translation leaves out a value"


def untranslated(tree: ast.AST) -> Iterator[str]:
    """The sentences that a module shows at the terminal without `message`: two words in a row, written there."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args:
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            is_shown = name in SHOWING or (name == "print" and isinstance(node.func, ast.Attribute))
            parts = node.args[0].values if isinstance(node.args[0], ast.JoinedStr) else [node.args[0]]
            text = " {} ".join(str(one.value) for one in parts if isinstance(one, ast.Constant))
            if is_shown and re.search(r"[a-z]{2,} [a-z]{2,}", text):
                yield text


SHOWING = {"echo", "notify"}
"""Functions whose first argument a person reads at the terminal; also `console.print`, but not Python's own `print`."""


@pytest.mark.parametrize("room", ["flows", "tasks"])
def test_what_the_terminal_shows_goes_through_message(room: str) -> None:
    shown = {
        path.relative_to(ROOT).as_posix(): list(untranslated(ast.parse(path.read_text(encoding="utf-8"))))
        for path in (ROOT / room).rglob("*.py")
    }
    assert not {path: texts for path, texts in shown.items() if texts}
    assert list(untranslated(ast.parse('console.print(f"{n} steps to compute"); print("for a log"); echo(line)')))


def test_the_search_finds_sentences() -> None:
    tree = ast.parse('message("a {n}", n=1); message(NAMES[key]); message("b" if n == "x" else "c"); other("d")')
    assert set(sentences(tree)) == {"a {n}", "b", "c"}


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C.UTF-8"}, "en"),
        ({"LANG": "de_DE.UTF-8"}, "en"),
        ({"LC_MESSAGES": "zh-Hans", "LANG": "en_US.UTF-8"}, "zh"),
        ({"LANG": "zh_TW", LANGUAGE_VARIABLE: "en"}, "en"),
        ({"LANG": "C", LANGUAGE_VARIABLE: "zh"}, "zh"),
    ],
    ids=str,
)
def test_the_language_is_the_chosen_one_or_that_of_the_locale(
    variables: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (*LOCALE_VARIABLES, LANGUAGE_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert preferred_language() == expected
    assert language() == "en", "only the command line takes over what a person prefers"


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("", "en"),
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        ("fr, zh-CN;q=0.8, en;q=0.7", "zh"),
        ("zh;q=0.3, en;q=0.7", "en"),
        ("de, *;q=0.5", "en"),
        ("zh;q=many, en", "en"),
    ],
)
def test_a_browser_says_its_language(header: str, expected: str) -> None:
    assert accepted_language(header) == expected


def test_a_language_is_chosen_for_a_block() -> None:
    with in_language("zh"):
        assert language() == "zh" and message("{minutes} min {seconds} s", minutes=2, seconds=3) == "2 分 3 秒"
    assert language() == "en" and message("{minutes} min {seconds} s", minutes=2, seconds=3) == "2 min 3 s"


def test_a_sentence_without_translation_stays_english() -> None:
    with in_language("zh"):
        assert message("{n} unknown things", n=3) == "3 unknown things"
