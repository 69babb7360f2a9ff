"""The Chinese template says the same as the English ones: keys, commands, code, tables; its comments are Chinese."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tasks.projects.creation import create
from tests.deploy.test_translations import FENCED, links, named, outline
from tests.steps import ROOT
from tests.tasks.projects.test_own_projects import command

TEMPLATES = ROOT / "tasks" / "projects" / "templates"
FILES = ("Makefile", ".gitignore", ".github/workflows/cursus.yaml", "dvc.yaml", "prefect.yaml")
PAGES = ("README.md", "parts/README.md")
COMMENTED = ("Makefile", ".gitignore", ".github/workflows/cursus.yaml", "params.yaml", "recipes/own.yaml", *PAGES)
COMMENT = re.compile(r"(?:^|\s)#+\s(.*)")
DOCSTRING = re.compile(r'"""[^"]*"""')
ENGLISH_WORDS = re.compile(r"[A-Za-z]{2,} [a-z]{2,}")
CHINESE = re.compile(r"[\u4e00-\u9fff]")


@pytest.fixture(scope="module")
def english(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose template has nothing but the files of all templates, and no dataset."""
    root = tmp_path_factory.mktemp("english") / "project"
    create(root, "empty")
    return root


@pytest.fixture(scope="module")
def chinese(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("chinese") / "project"
    create(root, "chinese")
    return root


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def code(written: str) -> list[str]:
    """Lines without comments and docstrings, which are translated."""
    return [COMMENT.sub("", line).rstrip() for line in DOCSTRING.sub('""""""', written).splitlines()]


def comments(written: str) -> list[str]:
    return [match[1] for line in written.splitlines() if (match := COMMENT.search(line))]


def loaded(path: Path) -> dict[str, Any]:
    settings: dict[str, Any] = YAML(typ="safe").load(text(path))
    return settings


@pytest.mark.parametrize("name", FILES)
def test_both_languages_have_the_same_lines(name: str, english: Path, chinese: Path) -> None:
    translated = text(chinese / name).replace("'cursus[chinese]'", "cursus")  # its texts are those of a package
    assert code(translated) == code(text(english / name))


@pytest.mark.parametrize("name", PAGES)
def test_both_languages_have_the_same_code_titles_tables_and_names(name: str, english: Path, chinese: Path) -> None:
    original, translated = text(english / name), text(chinese / name)
    assert [code(block) for block in FENCED.findall(translated)] == [code(block) for block in FENCED.findall(original)]
    assert outline(translated) == outline(original) and named(translated) == named(original)
    assert links(translated, ".") == links(original, ".")


def test_both_languages_have_the_same_settings(english: Path, chinese: Path) -> None:
    original, translated = loaded(english / "params.yaml"), loaded(chinese / "params.yaml")
    of_datasets = {"default_dataset", "datasets"}
    assert translated.keys() - of_datasets == original.keys() - of_datasets
    assert all(translated[key] == original[key] for key in original.keys() - of_datasets)
    texts = loaded(TEMPLATES / "text" / "datasets.yaml")
    assert translated["default_dataset"] == texts["default_dataset"]
    assert list(translated["datasets"]["own"]) == list(texts["datasets"]["own"])
    own, of_texts = loaded(chinese / "recipes" / "own.yaml"), loaded(TEMPLATES / "text" / "own.yaml")
    assert list(own) == [key for key in of_texts if key != "stages"]


def test_every_comment_of_the_shipped_settings_is_translated_and_no_other(english: Path) -> None:
    shipped = text(english / "params.yaml").partition("# default_dataset:")[0]
    lines = [line.rpartition("# ")[2] for line in shipped.splitlines() if "# " in line]
    assert sorted(loaded(TEMPLATES / "chinese" / "comments.yaml")) == sorted(lines)


@pytest.mark.parametrize("name", COMMENTED)
def test_comments_and_docstrings_are_chinese(name: str, chinese: Path) -> None:
    written = text(chinese / name)
    every = [*comments(written), *DOCSTRING.findall(written)]
    assert any(CHINESE.search(one) for one in every)
    assert [one for one in every if ENGLISH_WORDS.search(one) and not CHINESE.search(one)] == []


def test_the_part_on_the_page_keeps_the_contract(chinese: Path) -> None:
    """A docstring that begins with a whole sentence may end it with 。"""
    (part,) = FENCED.findall(text(chinese / "parts" / "README.md"))
    (chinese / "parts" / "schedules").mkdir()
    (chinese / "parts" / "schedules" / "halving.py").write_text(part, encoding="utf-8")
    done = command(chinese, "-m", "cursus", "check")
    assert "ok       parts/schedules/halving.py: halving" in done.stdout, done.stdout + done.stderr


def test_the_comparison_sees_what_fell_behind() -> None:
    line = "up: ## start\n\tcursus up  # now"
    assert code(line) == ["up:", "\tcursus up"] == code(line.replace("start", "启动"))
    assert code(line) != code(line.replace("cursus up", "cursus down")) and comments(line) == ["start", "now"]
