"""The card of a prepared dataset: its header and counts, that it is self-contained and always the same."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from markdown_it import MarkdownIt
from ruamel.yaml import YAML

from pipelines.corpora.evidence.dataset_evidence import gather_evidence
from pipelines.corpora.evidence.profile import dataset_profile
from pipelines.corpora.leaks.ledger import LedgerEntry, write_ledger
from pipelines.corpora.shards.writing import read_json, write_json
from pipelines.corpora.steps.clean import clean
from pipelines.corpora.steps.collect import collect
from pipelines.corpora.steps.decontaminate import decontaminate
from pipelines.corpora.steps.deduplicate import deduplicate
from pipelines.corpora.steps.pin import pin, pin_path
from pipelines.corpora.steps.select import select
from pipelines.corpora.steps.split import split
from pipelines.corpora.steps.step import TABLES, begin, prepared
from pipelines.reports.cards.card import card
from tests.pipelines.corpora.small_dataset import write_small_dataset

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset that is measured, with a verdict as the step before the card writes it."""
    root = tmp_path_factory.mktemp("card")
    write_small_dataset(root)
    (root / "recipes").symlink_to(REPOSITORY / "recipes")
    for step in (pin, collect, clean, deduplicate, decontaminate, select, split):
        step("small", root)
    home = prepared("small", root)
    write_json(
        home / "profile.json",
        dataset_profile(gather_evidence(begin("validate", "small", root), read_json(home / "summary.json"))),
    )
    write_json(home / "verdict.json", {"success": True})
    return root


def test_the_header_says_what_the_hub_reads_and_where_the_tables_are(root: Path) -> None:
    card("small", root)
    home = prepared("small", root)
    _, header, _ = (home / "card.md").read_text().split("---\n", 2)
    said = YAML(typ="safe").load(header)
    assert said["language"] == ["en"] and said["task_categories"] == ["text-classification"]
    assert said["size_categories"] == ["n<1K"] and said["license"] == "other"
    for config in said["configs"]:
        for split_of in config["data_files"]:
            assert list(home.glob(split_of["path"]))


def test_licences_are_those_stated_and_move_no_step(root: Path) -> None:
    params, pinned = root / "params.yaml", read_json(pin_path("small", root))["steps"]
    before = params.read_text()
    try:
        stated = before.replace("text: body}", "text: body, licence: CC0-1.0}").replace(
            "    task:\n", "    task:\n      licence: MIT\n"
        )
        params.write_text(stated)
        pin("small", root)
        now = read_json(pin_path("small", root))["steps"]
        assert all(now[step] == pinned[step] for step in pinned if step != "card")
        card("small", root)
        text = (prepared("small", root) / "card.md").read_text()
        assert "| domain | texts/domain.csv | CC0-1.0 |" in text and "| task | texts/train.jsonl | MIT |" in text
        assert "| general | texts/general | not stated |" in text
    finally:
        params.write_text(before)


def test_it_counts_what_the_tables_hold_and_what_each_step_dropped(root: Path) -> None:
    card("small", root)
    home = prepared("small", root)
    summary, text = read_json(home / "summary.json"), (home / "card.md").read_text()
    for name in TABLES:
        assert f"| {name} | {summary['tables'][name]['documents']} |" in text
    for step in summary["steps"]:
        for name, table in step["tables"].items():
            line = next(line for line in text.splitlines() if line.startswith(f"| {step['step']} | {name} |"))
            assert all(f"{many} {reason}" in line for reason, many in table["dropped"].items())
    assert "| email | 8 |" in text
    assert "As the stage regime/general would corrupt them" in text and "**\\[MASK\\]**" in text


def test_the_page_needs_nothing_but_itself_and_comes_out_the_same(root: Path) -> None:
    home = prepared("small", root)
    card("small", root)
    first = [(home / name).read_bytes() for name in ("card.md", "card.html")]
    card("small", root)
    assert [(home / name).read_bytes() for name in ("card.md", "card.html")] == first
    page = first[1].decode()
    assert not re.search(r"<script|<link|<img|src=", page)
    assert re.findall(r'href="([^"]*)"', page) == ["card.zh.html"] and (home / "card.zh.html").is_file()
    assert page.count("<svg") == len(TABLES) and "prefers-color-scheme: dark" in page
    assert str(root) not in page and '<span class="changed">[MASK]</span>' in page


def test_the_ledger_is_summed_where_there_is_one(root: Path) -> None:
    home = prepared("small", root)
    path = home / "decontaminated" / "ledger.parquet"
    whole = path.read_bytes()
    rows = [
        LedgerEntry("a text", "general", "a:1", "test", "b:1", kind, 1.0, "a text", "drop").row
        for kind in ("exact", "exact", "ngram")
    ]
    write_ledger(path, rows)
    try:
        card("small", root)
        text = (home / "card.md").read_text()
        read_by = "vectors, general"  # the stages of the recipe `regime` that read this table
        assert (
            f"| general | test | exact | drop | 2 | {read_by} |\n| general | test | ngram | drop | 1 | {read_by} |"
            in text
        )
        pq.write_table(pq.read_table(path).slice(0, 0), path)
        card("small", root)
        assert "Nothing overlaps: the ledger is empty." in (home / "card.md").read_text()
        path.unlink()
        card("small", root)
        assert "There is no ledger." in (home / "card.html").read_text()
    finally:
        path.write_bytes(whole)


def test_texts_cannot_break_the_page_or_the_table(root: Path) -> None:
    home = prepared("small", root)
    before = read_json(home / "summary.json")
    try:
        write_json(
            home / "summary.json", before | {"shown": [{"text": "a | b\n<script>alert(1)</script>", "label": "x"}]}
        )
        card("small", root)
        assert "<script" not in (home / "card.html").read_text()
        assert "- text: a \\| b &lt;script&gt;" in (home / "card.md").read_text()
    finally:
        write_json(home / "summary.json", before)


def test_hostile_texts_and_labels_are_text_on_the_card(root: Path) -> None:
    """A step's sample, a label, a sequence of words and an example, as a dataset could bring them."""
    home = prepared("small", root)
    card("small", root)
    before = (home / "card.md").read_text()
    path, found = home / "profile.json", "![p](http://evil.example/p.png) [x](javascript:alert(1)) <img src=x>"
    whole = path.read_bytes()

    def hostile(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: hostile(one) for key, one in value.items()}
        if isinstance(value, list):
            return [hostile(one) for one in value]
        return found if isinstance(value, str) else value

    try:
        profile = json.loads(whole)
        for table in profile["tables"].values():
            for key in ("texts", "sequences", "examples", "kinds", "shown", "samples"):
                if key in table:
                    table[key] = hostile(table[key])
            if isinstance(kinds := table.get("kinds"), dict):
                table["kinds"] = {found: sum(kinds.values())}
        write_json(path, profile)
        card("small", root)
        page = (home / "card.md").read_text()
        assert page != before and "evil.example" in page
        tokens = MarkdownIt("commonmark").enable("table").parse(page)
        kinds = {inner.type for token in tokens for inner in (token, *(token.children or []))}
        assert not kinds & {"image", "link_open", "html_inline", "html_block"}
        assert "<img src=x" not in (home / "card.html").read_text()
    finally:
        path.write_bytes(whole)
