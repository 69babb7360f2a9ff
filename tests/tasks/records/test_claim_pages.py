"""What page, drawings and terminal show of a record: the right side, the right sign, in the right column."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from flows.cli.claim import show_record
from pipelines.lineage.store import Store
from tasks.records.claim_conditions import measured_text
from tasks.records.claims import PAGE, RECORDS, record_claim
from tasks.records.claims_page import summary
from tasks.stages.code import code_of
from tasks.stages.conditions import commit_of
from tests.steps import ROOT, shipped
from tests.tasks.records.test_claims import RIGHT, answers, measured


def recorded(folder: Path, **right: int) -> dict[str, Any]:
    """The record of `adapter`'s claim with so many right answers of a hundred."""
    rows = {stage: answers(number) for stage, number in {**RIGHT, **right}.items()}
    return record_claim(folder, measured(folder, Store(folder / "store"), shipped("adapter"), "within_a_point", rows))


def cells(page: str, title: str, column: str) -> str:
    """The cell of a claim's row under a column, in the table of that column whose first cell has `title`."""
    lines = page.splitlines()
    for number, line in enumerate(lines):
        if line.startswith("| claim |") and f"| {column} |" in line:
            heads = [cell.strip() for cell in line.split("|")]
            for row in lines[number + 2 :]:
                if not row.startswith("|"):
                    break
                if title in row:
                    return row.split("|")[heads.index(column)].strip()
    raise AssertionError(f"no row {title!r} with a column {column!r}")


@pytest.mark.parametrize(("plain", "adapter", "sign", "verdict"), [
    (40, 70, "+0.300", "reproduced"), (70, 40, "-0.300", "not reproduced"),
])  # fmt: skip
def test_the_page_shows_the_system_minus_the_baseline(
    tmp_path: Path, plain: int, adapter: int, sign: str, verdict: str
) -> None:
    record = recorded(tmp_path, plain=plain, adapter=adapter)
    page = (tmp_path / PAGE).read_text(encoding="utf-8")
    assert cells(page, "within_a_point", "baseline") == f"plain {plain / 100:.3f}"
    assert cells(page, "within_a_point", "system") == f"adapter {adapter / 100:.3f}"
    effect = cells(page, "within_a_point", "effect [95 %]")
    assert effect.startswith(f"{sign} [{record['effect']['low']:+.3f}, {record['effect']['high']:+.3f}]")
    assert record["effect"]["low"] < record["effect"]["difference"] < record["effect"]["high"]
    assert cells(page, "within_a_point", "verdict") == f"**{verdict}**" and record["verdict"] == verdict
    assert cells(page, "within_a_point", "p (Holm)") == "< 0.001"
    assert cells(page, "within_a_point", "seeds") == "2" and cells(page, "within_a_point", "metric") == "accuracy"
    # the other metrics, each in its row and with its sign
    row = next(line for line in page.splitlines() if "| macro_f1 |" in line)
    macro = record["other_metrics"]["macro_f1"]
    of_sides = [record[side]["macro_f1"]["mean"] for side in ("baseline", "system")]
    assert macro["difference"] == pytest.approx(of_sides[1] - of_sides[0])
    assert row.split("|")[3:6] == [*(f" {one:.3f} " for one in of_sides), f" {macro['difference']:+.3f} "
                                   f"[{macro['low']:+.3f}, {macro['high']:+.3f}] "]  # fmt: skip


@pytest.mark.parametrize(("plain", "adapter"), [(40, 70), (70, 40)])
def test_the_drawing_has_the_effect_on_its_side_of_zero(tmp_path: Path, plain: int, adapter: int) -> None:
    record = recorded(tmp_path, plain=plain, adapter=adapter)
    drawing = (tmp_path / RECORDS / "greater.svg").read_text(encoding="utf-8")
    assert f"{record['effect']['difference']:+.3f}" in drawing and record["verdict"] in drawing
    (dot,) = (float(x) for x in re.findall(r'class="mean" cx="([\d.]+)"', drawing))
    (zero,) = (float(x) for x in re.findall(r'class="neutral" x1="([\d.]+)"', drawing))
    assert (dot > zero) is (adapter > plain)


def test_the_terminal_shows_the_same(tmp_path: Path) -> None:
    output = Console(width=200, record=True, highlight=False)
    show_record(output, recorded(tmp_path))
    text = output.export_text()
    assert re.search(r"^baseline +plain +accuracy 0\.400 \[", text, re.MULTILINE)
    assert re.search(r"^system +adapter +accuracy 0\.700 \[", text, re.MULTILINE)
    assert re.search(r"^effect +\+0\.300 \[\+0\.\d+, \+0\.\d+\] +reproduced", text, re.MULTILINE)
    assert re.search(r"^sides +equal: seeds, data; not: tokens 20 / 10;", text, re.MULTILINE)


def test_the_page_counts_its_records_by_verdict(tmp_path: Path) -> None:
    recorded(tmp_path)
    page = (tmp_path / PAGE).read_text(encoding="utf-8")
    counted = (
        "**Claims measured: 1, of 1 recipes: 1 reproduced. Recipes of which at least one claim is reproduced: 1.**"
    )
    assert counted in page.splitlines()
    several = [
        {"recipe": name, "verdict": verdict} for name, verdict in zip("aab", ["x", "x", "reproduced"], strict=True)
    ]
    assert summary(several)[0].startswith("**Claims measured: 3, of 2 recipes: 2 x, 1 reproduced. ")
    assert summary([]) == []


def test_less_perplexity_is_shown_as_better(tmp_path: Path) -> None:
    recipe = shipped("ngram")
    nats = np.linspace(90, 110, 40)
    texts = {
        stage: np.stack([nats * factor, np.full(40, 20.0), np.full(40, 70.0)], axis=1)
        for stage, factor in (("trigram", 0.7), ("unigram", 1.4))
    }
    claim = measured(tmp_path, Store(tmp_path / "store"), recipe, "steep_to_three", texts, "perplexity")
    record = record_claim(tmp_path, claim)
    page = (tmp_path / PAGE).read_text(encoding="utf-8")
    means = {one["stage"]: one["figure"]["mean"] for one in record["sides"]}
    assert means["trigram"] < means["unigram"] and record["lower"]
    assert record["contrasts"][0]["effect"] == pytest.approx(means["unigram"] / means["trigram"])
    assert cells(page, "steep_to_three", "figure") == "perplexity ↓"
    shown = cells(page, "steep_to_three", "measured [95 %]")
    assert shown.index("trigram") < shown.index("unigram"), "the best of the claim first"
    assert cells(page, "steep_to_three", "form") == "times"
    assert cells(page, "steep_to_three", "effect [95 %]").startswith(f"{record['contrasts'][0]['effect']:.3g} times [")


def test_a_record_of_a_project_of_its_own_says_of_which_code(tmp_path: Path) -> None:
    assert code_of(ROOT) is None, "the models' commit is that of the code"
    assert code_of(tmp_path) == {"version": version("cursus"), "commit": commit_of(ROOT)}
    record = {"started": "2026-01-02T00:00:00", "commit": None, "cost": {"processor": "one", "cores": 2}}
    assert measured_text(record) == "2026-01-02, commit none; one, 2 cores"
    record["code"] = {"version": "0.1.0", "commit": "0123456789+"}
    assert measured_text(record) == (
        "2026-01-02, cursus 0.1.0, commit 01234567, sources differed, in a project outside git; one, 2 cores"
    )
    record |= {"commit": "ab" * 20, "clean": True, "code": {"version": "0.1.0", "commit": None}}
    assert measured_text(record) == (
        "2026-01-02, cursus 0.1.0, in a project at commit abababab, clean tree; one, 2 cores"
    )
