"""Pages in every language: nothing that they show is left untranslated, and all figures are the same."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from jinja2 import nodes

from pipelines.components import Component, discover
from pipelines.judging.attacks import Attack
from pipelines.judging.gate import Criterion
from pipelines.judging.probes import Probe
from pipelines.messages.translation import LANGUAGES, in_language, localized, translations
from pipelines.recipe.kinds import Kind
from pipelines.reports.elements.reasons import reason_text
from pipelines.reports.elements.translated_templates import translating_environment
from pipelines.reports.elements.wording import metric_name, plain
from pipelines.reports.index import render_index
from pipelines.reports.report import read_records, render_report
from pipelines.reports.score_tables import EXECUTION
from pipelines.task_families import TaskFamily
from tests.pipelines.reports.test_report import SUMMARY, VERDICT, execution
from tests.steps import ROOT
from tests.tasks.servers.conftest import CHROMIUM, NO_CHROMIUM, QUIET

__all__ = ["execution"]

TEMPLATES = [
    path
    for folder in ("elements", "sections", "cards/templates")
    for path in sorted((ROOT / "pipelines" / "reports" / folder).glob("*.html"))
]
WORD = re.compile(r"[A-Za-z]{2,}")
IN_EVERY_LANGUAGE = {"Cursus", "Brier", "F1", "MB", "MLflow", "Prefect", "Holm", "McNemar", "TF", "IDF", "ms", "word"}
"""Words of pages that are no words of data and are written alike in every language."""


VOID = {"br", "meta", "line", "circle", "rect", "path", "polyline"}
UNREAD = {"style", "code", "blockquote"}


class Shown(HTMLParser):
    """What a reader sees of a page, or hears: its text, titles and labels; without code and data in their language."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.language: str | None = None
        self._hidden: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "html":
            self.language = values["lang"]
        elif tag not in VOID and (self._hidden or tag in UNREAD or "lang" in values):
            self._hidden.append(tag)
        if label := values.get("aria-label"):
            self.texts.append(label)

    def handle_endtag(self, tag: str) -> None:
        if self._hidden and self._hidden[-1] == tag:
            self._hidden.pop()

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.texts.append(data)


def untranslated(source: str) -> Iterator[str]:
    """Words of a template that stand outside its translated sentences, as text or as a label."""
    text = "".join(_pieces(translating_environment().parse(source)))
    text = re.sub(r"<style>.*?</style>", " ", text, flags=re.DOTALL)
    yield from WORD.findall(re.sub(r"<[^>]*>", " ", text))


def _pieces(node: nodes.Node) -> Iterator[str]:
    """The text of a template, with a 0 in place of every value."""
    if isinstance(node, nodes.TemplateData):
        yield node.data
    elif isinstance(node, nodes.Expr):
        yield "0"
    else:
        for child in node.iter_child_nodes():
            yield from _pieces(child)


def test_the_search_finds_a_word_outside_of_the_sentences() -> None:
    page = '<p class="note">{% trans %}Inside{% endtrans %} {{ _("Inside") }} {{ value }} Outside</p>'
    assert list(untranslated(page)) == ["Outside"]


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_every_word_of_a_template_is_translated(path: Path) -> None:
    assert set(untranslated(path.read_text(encoding="utf-8"))) <= IN_EVERY_LANGUAGE


@pytest.mark.parametrize("family", [TaskFamily, Attack, Probe, Criterion], ids=lambda family: family.__name__)
@pytest.mark.parametrize("language", [name for name in LANGUAGES if name != "en"])
def test_every_component_that_a_page_names_has_a_name_in_the_language(language: str, family: type[Component]) -> None:
    discover(family.__module__)
    names = {name.replace("_", " ") for name, one in family.members.items() if one.__module__.startswith("pipelines.")}
    assert names and names <= set(translations(language))
    assert {str(kind).replace("_", " ") for kind in Kind} <= set(translations(language))


def test_names_and_reasons_in_chinese() -> None:
    with in_language("zh"):
        assert plain("text_classification") == "文本分类" and plain("of_my_own") == "of my own"
        assert reason_text("test: same text in train") == "测试集：与训练集中的文本相同"
        assert reason_text("near copy in task_text") == "与任务文本中的文本近似重复"
        assert reason_text("anything else") == "anything else"
        assert metric_name("exact_match") == "完全匹配" and metric_name("my_metric") == "my metric"
    assert reason_text("test: same text in train") == "test: same text in train"


def numbers(texts: list[str]) -> Counter[str]:
    """The figures that a page shows."""
    return Counter(re.findall(r"\d+(?:[.,]\d+)*", " ".join(texts)))


@pytest.fixture(scope="module")
def pages(execution: tuple[dict[str, Any], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of reports with one execution."""
    told, store = execution
    folder = tmp_path_factory.mktemp("reports")
    out = folder / told["id"] / "report.html"
    headline = {"models": {"served": "int8", "best": "classify"}, "metrics": {}}
    records = read_records(told["steps"], store)
    assert render_report({**told, "headline": headline}, records, store, SUMMARY, VERDICT, out) == out
    (out.parent / EXECUTION).write_text(json.dumps(told), encoding="utf-8")
    assert render_index(folder, store) == folder / "index.html"
    return folder


def test_a_report_in_chinese_shows_the_same_figures_in_chinese_words(
    pages: Path, execution: tuple[dict[str, Any], Path]
) -> None:
    told, _ = execution
    names = {str(value) for step in told["steps"] for value in step.values()}
    english_only = {english for english, own in translations("zh").items() if english != own} - names
    for english in (pages / told["id"] / "report.html", pages / "index.html"):
        first, second = (
            Shown(english.with_name(localized(english.name, name)).read_text(encoding="utf-8")) for name in ("en", "zh")
        )
        assert (first.language, second.language) == ("en", "zh")
        assert numbers(first.texts) == numbers(second.texts)
        assert {text.strip() for text in first.texts} & english_only
        assert not {text.strip() for text in second.texts} & english_only, "these are shown in English"
        read = " ".join(" ".join(second.texts).split())
        assert not [one for one in english_only if " " in one.strip() and "{" not in one and one in read]


def test_the_decision_comes_first(pages: Path, execution: tuple[dict[str, Any], Path]) -> None:
    told, _ = execution
    for name, words in (("en", ("Serve int8: ", "Do not serve int8")), ("zh", ("部署 int8：",))):
        page = (pages / told["id"] / localized("report.html", name)).read_text(encoding="utf-8")
        first = re.search(r'<p class="lead decision">(.*?)</p>', page)
        assert first is not None and any(word in first[1] for word in words)
        assert "\u00a0%" in first[1], "no line ends before a per cent sign"


def test_pages_lead_to_the_same_page_in_the_other_language(pages: Path, execution: tuple[dict[str, Any], Path]) -> None:
    told, _ = execution
    for page in pages.rglob("*.html"):
        links = re.findall(r'href="([^"]+)"', page.read_text(encoding="utf-8"))
        assert links and all((page.parent / link).is_file() for link in links)
    chinese = (pages / "index.zh.html").read_text(encoding="utf-8")
    assert f'href="{told["id"]}/report.zh.html"' in chinese and 'href="index.html" lang="en"' in chinese


def test_a_report_without_a_chinese_page_is_listed_in_chinese_too(
    pages: Path, execution: tuple[dict[str, Any], Path], tmp_path: Path
) -> None:
    told, store = execution
    (tmp_path / told["id"]).mkdir()
    (tmp_path / told["id"] / EXECUTION).write_text((pages / told["id"] / EXECUTION).read_text(), encoding="utf-8")
    render_index(tmp_path, store)
    assert f'href="{told["id"]}/report.html"' in (tmp_path / "index.zh.html").read_text(encoding="utf-8")


@pytest.mark.slow_tier
@pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM)
def test_a_telephone_shows_verdicts_without_scrolling(pages: Path, execution: tuple[dict[str, Any], Path]) -> None:
    from playwright.sync_api import sync_playwright

    told, _ = execution
    ends = "() => [...document.querySelectorAll('td .verdict')].map(one => one.getBoundingClientRect().right)"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        page = browser.new_page(viewport={"width": 400, "height": 800})
        for name in LANGUAGES:
            page.goto((pages / told["id"] / localized("report.html", name)).as_uri())
            shown = page.evaluate(ends)
            assert shown and max(shown) <= 400
            assert page.evaluate("document.documentElement.scrollWidth") <= 400, "the page itself does not scroll"
        browser.close()
