"""Texts and labels in Markdown are shown as they are: no page loads or links what a dataset says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from pipelines.safety.markdown import inert
from tasks.datasets.preparation import verdict_page

HOSTILE = [
    "![p](http://evil.example/p.png)",
    "[x](javascript:alert(1))",
    "<img src=x onerror=alert(1)>",
    "<http://evil.example>",
    "[a]: http://evil.example\n\n[a]",
    "`code` *strong* __more__ ~~gone~~",
    "a | b\n\n# heading\n\n- item",
    "\\[x](http://evil.example)",
    "&lt;b&gt; &amp; &#91;x&#93;(http://evil.example)",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_what_a_dataset_says_is_text_and_nothing_else(text: str) -> None:
    renderer = MarkdownIt("commonmark").enable("table")
    for page in (f"- text: {inert(text)}", f"| a | b |\n|---|---|\n| {inert(text)} | last |"):
        tokens = [inner for token in renderer.parse(page) for inner in (token.children or [])]
        assert {token.type for token in tokens} <= {"text", "text_special"}
        shown = "".join(token.content for token in tokens)
        assert " ".join(text.split()) in shown, "and it is shown whole"


@pytest.mark.parametrize(
    "text", ["see https://evil.example/a", "www.evil.example", "WWW.evil.example", "me@evil.example"]
)
def test_an_address_becomes_no_link_by_itself(text: str) -> None:
    """GitHub and Prefect's UI make links of bare addresses; an escape in the middle keeps them from it."""
    assert not re.search(r"https?://|www\.[a-z]|[a-z]@[a-z]", inert(text), re.IGNORECASE)
    assert MarkdownIt("commonmark").renderInline(inert(text)) == text


def test_the_verdict_shows_a_hostile_row_as_text(tmp_path: Path) -> None:
    failed = {
        "success": False, "severity": "critical", "column": "text", "expectation": "no_duplicates", "meaning": "twice",
        "trouble": None, "unexpected_count": 1, "observed": "![p](http://evil.example)",
        "rows": [{"stands_at": "a.csv:1", "text": "one\n\n![p](http://evil.example/p.png) `x`"}],
    }  # fmt: skip
    verdict = {
        "dataset": "small", "success": False, "data_docs": "none", "tables": {"train": {"expectations": [failed]}},
    }  # fmt: skip
    page = verdict_page(verdict, tmp_path)
    tokens = [inner for token in MarkdownIt("commonmark").parse(page) for inner in (token.children or [])]
    assert not {"image", "link_open", "html_inline"} & {token.type for token in tokens}
