"""Prefect tasks that bring a dataset up to date and show the result, or why the data was rejected."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from pipelines.corpora.shards.writing import read_json
from pipelines.errors import QualityError
from pipelines.safety.markdown import inert
from pipelines.safety.redaction import redacted_errors
from tasks.datasets.damage import damaged, discard
from tasks.datasets.prepared import Prepared, open_prepared, refresh_pin, reproduce
from tasks.display.artifacts import ARTIFACTS
from tasks.display.page_addresses import page_address
from tasks.quality.acceptance import VERDICT


@task(task_run_name="pin {dataset}", cache_policy=NO_CACHE)
@redacted_errors()
def pin_dataset(dataset: str, root: Path) -> None:
    """Check sources, code and packages for changes."""
    refresh_pin(dataset, root)


@task(task_run_name="reproduce {dataset}", cache_policy=NO_CACHE)
@redacted_errors()
def reproduce_dataset(dataset: str, root: Path, on_step: Callable[[str], None] | None = None) -> None:
    """Run the DVC stages that are out of date, calling `on_step` with the name of each.

    Failed expectations are shown as an artifact before QualityError is raised.
    """

    def log_step(step: str) -> None:
        get_run_logger().info(step)
        if on_step is not None:
            on_step(step)

    try:
        reproduce(dataset, root, log_step)
    except QualityError as refused:
        verdict = read_json(root / "data" / "docs" / dataset / VERDICT)
        page = f"{verdict_page(verdict, root)}\n\n{inert(refused)}"
        ARTIFACTS.text(_key(dataset, "refused"), page, "Failed expectations")
        ARTIFACTS.flush()
        raise


@task(task_run_name="check {dataset}", cache_policy=NO_CACHE)
@redacted_errors()
def check_tables(dataset: str, root: Path) -> list[str]:
    """Read every table and delete damaged ones; returns their paths in the dataset's folder."""
    opened = open_prepared(dataset, root)
    names = damaged(opened)
    for name in names:
        get_run_logger().warning(
            "%s is damaged: its content differs from its digest; recreating it", opened.folder / name
        )
        discard(opened, name, root)
    return names


@task(task_run_name="describe {dataset}", cache_policy=NO_CACHE)
@redacted_errors()
def describe_dataset(dataset: str, root: Path) -> Prepared:
    """Create the Prefect artifacts: row counts of every table, the verdict, links to the Data Docs, and the dataset's
    card."""
    opened = open_prepared(dataset, root)
    counts = opened.summary["tables"]
    rows = [{"table": name, **counts[name], "md5": opened.digests[name]} for name in counts]
    ARTIFACTS.table(_key(dataset, "tables"), rows, f"Tables of {dataset}")
    ARTIFACTS.text(_key(dataset, "verdict"), verdict_page(opened.verdict, root), f"Verdict on {dataset}")
    card = opened.folder / "card.md"
    if card.is_file():
        ARTIFACTS.text(_key(dataset, "card"), card_page(card, root), f"Card of {dataset}")
    ARTIFACTS.flush()
    return opened


def prepare_dataset(dataset: str, root: Path, on_step: Callable[[str], None] | None = None) -> Prepared:
    """Run the tasks above in order, calling `on_step` for each step that runs. Raises the CursusError of the failing
    step."""
    pin_dataset(dataset, root)
    reproduce_dataset(dataset, root, on_step)
    if check_tables(dataset, root):
        reproduce_dataset(dataset, root, on_step)
    return describe_dataset(dataset, root)


def verdict_page(verdict: dict[str, Any], root: Path) -> str:
    """The verdict as Markdown: one row per table, then every failed expectation with its rows."""
    lines = [f"# {inert(verdict['dataset'])}: {'all expectations met' if verdict['success'] else 'rejected'}", ""]
    lines += ["| table | expectations | failed | of these, warnings only |", "|---|---|---|---|"]
    for name, table in verdict["tables"].items():
        failed = [entry["severity"] for entry in table["expectations"] if not entry["success"]]
        lines.append(f"| {inert(name)} | {len(table['expectations'])} | {len(failed)} | {failed.count('warning')} |")
    for name, table in verdict["tables"].items():
        for entry in table["expectations"]:
            if not entry["success"]:
                about = f" on {inert(entry['column'])}" if entry["column"] else ""
                seen = entry["trouble"] or f"{entry['unexpected_count']:,} documents, value {entry['observed']}"
                lines += [
                    "",
                    f"**{inert(name)}: {inert(entry['expectation'])}**{about}: {inert(entry['meaning'])}",
                    "",
                    f"Observed: {inert(seen)}",
                    "",
                ]
                lines += [_shown(row, entry["column"]) for row in entry["rows"]]
    pages = {"Data Docs": verdict["data_docs"], "Dataset card": f"data/prepared/{verdict['dataset']}/card.html"}
    links = [f"[{name}]({page_address(root, root / page)})" for name, page in pages.items() if (root / page).is_file()]
    return "\n".join([*lines, "", " · ".join(links)])


def _shown(row: dict[str, Any], column: str) -> str:
    """A row as a line of Markdown: its location, the observed value, and the beginning of its text."""
    value = "" if column == "text" else f", {inert(column)} = {inert(row.get(column))}"
    return f"- {inert(row.get('stands_at'))}{value}: {inert(row.get('text'))}"


def card_page(card: Path, root: Path) -> str:
    """The card as Markdown, without its front matter, with a link to its HTML page."""
    _, _, text = card.read_text(encoding="utf-8").removeprefix("---\n").partition("\n---\n")
    return f"[HTML page]({page_address(root, card.with_suffix('.html'))})\n\n{text.strip()}\n"


def _key(dataset: str, what: str) -> str:
    return f"data-{dataset}-{what}".replace("_", "-")
