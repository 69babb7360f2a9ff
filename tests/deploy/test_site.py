"""The documentation site, built strictly: every page has its place, every link a target, every page its language."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.steps import RECIPES, ROOT

pytestmark = pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="the extra docs is not installed")
READ = ("README.md", "README.zh.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs", "recipes", "deploy/site", "benchmarks")


def build(root: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", "deploy/site/mkdocs.yml"]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what the site is made from."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in READ:
        source, target = ROOT / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    return folder


@pytest.fixture(scope="module")
def site(root: Path) -> Path:
    done = build(root)
    assert done.returncode == 0, done.stderr
    return root / "site"


class References(HTMLParser):
    """Addresses that a page refers to, its anchors, and its language."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.anchors: set[str] = set()
        self.language: str | None = None
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "html":
            self.language = values.get("lang")
        self.anchors.update(value for name in ("id", "name") if (value := values.get(name)))
        self.targets += [value for name in ("href", "src") if (value := values.get(name))]


def broken(site: Path) -> Iterator[str]:
    """References of all pages to files or anchors of the site that are not there."""
    pages = {page: References(page) for page in site.rglob("*.html") if page.name != "404.html"}
    for page, references in pages.items():
        for target in references.targets:
            if re.match(r"[a-z]+:", target):
                continue
            address, _, anchor = target.partition("#")
            goal = (page.parent / unquote(address.partition("?")[0])).resolve() if address else page
            if not goal.exists() or (anchor and goal in pages and unquote(anchor) not in pages[goal].anchors):
                yield f"{page.relative_to(site)}: {target}"


def test_every_document_and_recipe_is_a_page_and_no_link_is_broken(site: Path) -> None:
    documents = [path for folder in ("", "decisions", "zh") for path in (ROOT / "docs" / folder).glob("*.md")]
    expected = [path.relative_to(ROOT / "docs").with_suffix(".html") for path in documents]
    expected += [Path("recipes") / f"{path.stem}.html" for path in RECIPES.glob("*.yaml") if path.stem != "systems"]
    assert [page for page in expected if not (site / page).is_file()] == []
    assert list(broken(site)) == []


def test_pages_state_their_language_and_show_what_they_say(site: Path) -> None:
    translated = sorted(path.stem for path in (ROOT / "docs" / "zh").glob("*.md"))
    chinese, english = ([site / folder / f"{name}.html" for name in translated] for folder in ("zh", ""))
    assert {References(page).language for page in [*chinese, site / "index.zh.html"]} == {"zh"}
    assert {References(page).language for page in [*english, site / "index.html"]} == {"en"}
    titles = [page.read_text(encoding="utf-8").partition("<h1")[2].partition("</h1>")[0] for page in chinese]
    assert all(re.search("[\u4e00-\u9fff]", title) for title in titles), "a Chinese page has a Chinese title"
    assert "十分钟能得到什么" in (site / "index.zh.html").read_text(encoding="utf-8")
    commands, chinese_data = ((site / name).read_text(encoding="utf-8") for name in ("commands.html", "zh/data.html"))
    assert 'id="cursus-run"' in commands and "--dry-run" in commands
    assert not re.search("[\u4e00-\u9fff]\n *[\u4e00-\u9fff]", chinese_data), "a line of Chinese ends without a space"
    decision = (site / "decisions" / "0002-data-plane.html").read_text(encoding="utf-8")
    assert "<li>A stage that depended on its source file" in re.sub(r"<p>|\s*\n\s*", "", decision), "a list is a list"
    bert, gallery = ((site / "recipes" / name).read_text(encoding="utf-8") for name in ("bert.html", "index.html"))
    assert '<svg class="ancestry"' in bert and ">classify</text>" in bert
    assert gallery.count("<figure>") == len(list(RECIPES.glob("*.yaml"))) - 1 and 'href="bert.html"' in gallery
    assert "cursus run bert" in re.sub("<[^>]*>", "", (site / "recipes" / "bert.html").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[data](dta.md)", "dta.md"),
        ("[data](data.md#no-such-part)", "no-such-part"),
        ("[code](../setup.cfg)", "no page"),
    ],
    ids=["page", "anchor", "file"],
)
def test_a_link_that_leads_nowhere_ends_the_build(text: str, sentence: str, root: Path, site: Path) -> None:
    page = root / "docs" / "limits.md"
    whole = page.read_text(encoding="utf-8")
    try:
        page.write_text(f"{whole}\n{text}\n", encoding="utf-8")
        done = build(root)
    finally:
        page.write_text(whole, encoding="utf-8")
    assert done.returncode == 1 and sentence in done.stdout + done.stderr
