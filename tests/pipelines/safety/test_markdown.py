"""Texts and labels in Markdown are shown as they are: no page loads or links what a dataset says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from pipelines.judging.gate import CriterionOutcome
from pipelines.safety.markdown import inert
from tasks.datasets.preparation import verdict_page
from tasks.decisions.record import Contestant, Promotion, PromotionDecision
from tasks.display.artifacts import ArtifactPublisher
from tasks.promotion.page import promotion_markdown

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


LIVE = {"image", "link_open", "html_inline", "html_block", "code_inline", "em_open", "strong_open"}
"""Tokens that do more than show text."""


def live(page: str) -> set[str]:
    """The tokens of a page that do more than show text."""
    tokens = MarkdownIt("commonmark").enable("table").parse(page)
    return {inner.type for token in tokens for inner in (token, *(token.children or []))} & LIVE


@pytest.mark.parametrize("text", HOSTILE)
def test_tables_links_and_descriptions_of_artifacts_show_text(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prefect's page renders each of them as Markdown."""
    publisher = ArtifactPublisher()
    monkeypatch.setattr(publisher, "_work", lambda: None)  # it would send them to a server
    publisher.table("table", [{"label": text, text: 0.5, "count": 3}], text)
    publisher.link("link", "http://127.0.0.1:5000/report.html", text, text)
    table, link = publisher._waiting.values()
    (row,) = json.loads(table.data)
    assert row.pop("count") == 3
    assert not any(live(shown) for shown in (*row, row["label"], table.description, link.description))
    assert live(link.data) == {"link_open"}
    (opened,) = [token for token in MarkdownIt("commonmark").parseInline(link.data)[0].children or [] if token.attrs]
    assert opened.attrs == {"href": "http://127.0.0.1:5000/report.html"}


@pytest.mark.parametrize("text", HOSTILE)
def test_a_promotion_shows_labels_and_reasons_as_text(text: str) -> None:
    side = Contestant(fingerprint="a" * 64, label=text, recipe="regime")
    outcome = CriterionOutcome.model_validate({"criterion": "quality", "outcome": "missed", "reason": f"class {text}"})
    decision = PromotionDecision.model_validate(
        {"action": "refused", "model": text, "alias": "champion", "fingerprint": "a" * 64, "at": "2026-01-01",
         "decided_by": text, "reason": text, "verdict": "NO-GO", "evidence": None, "champion": None, "former": None}
    )  # fmt: skip
    promotion = Promotion(
        id="promotion-1", began="2026-03-01T10:00:00+00:00", model=text, alias="champion", dataset="docs",
        family="text_classification", metrics=("macro_f1",), examples=20, candidate=side, champion=side,
        outcomes=[outcome], verdict="NO-GO", evidence="e" * 64, decision=decision,
    )  # fmt: skip
    assert live(promotion_markdown(promotion, None)) <= {"strong_open"}
