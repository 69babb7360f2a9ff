"""Sentences for people in their language.

    message("{count} steps to compute", count=3)      # English, or its translation in `zh/`
    {% trans %}{{ count }} steps to compute{% endtrans %}   # the same sentence in a template

An English format string is the key of its translation, as in gettext; there is one folder of files for each other
language, and tests that it lacks none. The command line chooses the language of what it prints: `--language`, else
`CURSUS_LANGUAGE`, else the locale. Pages are written in every language, because others read them than who made them.
Records are English.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

ENGLISH = "en"
LANGUAGES: Mapping[str, str] = {ENGLISH: "English", "zh": "中文"}
"""Language → its own name. The keys are values of `lang` in HTML."""
LANGUAGE_VARIABLE = "CURSUS_LANGUAGE"
LOCALE_VARIABLES = ("LC_ALL", "LC_MESSAGES", "LANG")
"""Variables of the POSIX locale for messages, the strongest first."""

_chosen: ContextVar[str] = ContextVar("language", default=ENGLISH)


def language() -> str:
    """The language in which sentences are written now."""
    return _chosen.get()


def preferred_language() -> str:
    """The language of the person at the terminal: `CURSUS_LANGUAGE`, else that of the locale, else English."""
    return _known(os.environ.get(LANGUAGE_VARIABLE)) or _known(_locale()) or ENGLISH


def accepted_language(header: str) -> str:
    """The language that a browser's `Accept-Language` prefers among ours: `fr, zh-CN;q=0.8, en;q=0.7` → `zh`."""
    ranges = [part.strip().partition(";q=") for part in header.split(",")]
    preferred = sorted(ranges, key=lambda one: -_quality(one[2]))
    return next((known for name, _, _ in preferred if (known := _known(name))), ENGLISH)


@contextmanager
def in_language(name: str) -> Iterator[None]:
    """Write sentences in the language `name` until the block ends."""
    token = _chosen.set(name)
    try:
        yield
    finally:
        _chosen.reset(token)


def message(english: str, /, **values: Any) -> str:
    """`english` in the current language, with its placeholders filled in, as by `str.format`."""
    return template(english).format(**values)


def template(english: str) -> str:
    """`english` in the current language, with its placeholders."""
    current = language()
    return english if current == ENGLISH else translations(current).get(english, english)


def translatable(english: str, /) -> str:
    """`english` itself: marks a sentence that a constant holds, and that `message` translates where it is shown."""
    return english


def localized(name: str, in_: str | None = None) -> str:
    """File name of a page in the current language, or in `in_`: `report.html`, `report.zh.html`."""
    chosen = in_ or language()
    stem, dot, suffix = name.rpartition(".")
    return name if chosen == ENGLISH else f"{stem}.{chosen}.{suffix}" if dot else f"{name}.{chosen}"


def localized_page(page: Path) -> Path:
    """The page in the current language, if it was written, or else `page` itself, the English one."""
    own = page.with_name(localized(page.name))
    return own if own.is_file() else page


@cache
def translations(name: str) -> Mapping[str, str]:
    """English sentence → its translation into the language `name`. Raises ValueError for one that is in two files."""
    from ruamel.yaml import YAML

    every: dict[str, str] = {}
    folder = files("pipelines.messages").joinpath(name)
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        loaded: dict[str, str] = YAML(typ="safe").load(file.read_text(encoding="utf-8"))
        if twice := every.keys() & loaded.keys():
            raise ValueError(f"{file.name}: translated in another file too: {sorted(twice)}")
        every |= loaded
    return every


def _quality(value: str) -> float:
    try:
        return float(value or 1)
    except ValueError:
        return 0.0


def _locale() -> str | None:
    return next((value for name in LOCALE_VARIABLES if (value := os.environ.get(name))), None)


def _known(value: str | None) -> str | None:
    """`zh_CN.UTF-8` → `zh`; None for a language without translations."""
    name = (value or "").replace("-", "_").partition(".")[0].partition("_")[0].lower()
    return name if name in LANGUAGES else None
