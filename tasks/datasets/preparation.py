"""Prefect tasks that bring a dataset up to date, and show what came of it or why it was refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from pipelines.corpora.shards.writing import read_json
from pipelines.corpora.steps.step import prepared
from pipelines.errors import QualityError
from tasks.datasets.damage import damaged, discard
from tasks.datasets.prepared import Prepared, open_prepared, refresh_pin, reproduce
from tasks.display.artifacts import SHOWING


@task(task_run_name="pin {dataset}", cache_policy=NO_CACHE)
def pin_dataset(dataset: str, root: Path) -> None:
    """Look at sources, code and packages again."""
    refresh_pin(dataset, root)


@task(task_run_name="reproduce {dataset}", cache_policy=NO_CACHE)
def reproduce_dataset(dataset: str, root: Path, on_step: Callable[[str], None] | None = None) -> None:
    """Run the DVC stages that are out of date; `on_step` hears of each. A refusal is shown as an artifact before it is raised."""

    def heard(step: str) -> None:
        get_run_logger().info(step)
        if on_step is not None:
            on_step(step)

    try:
        reproduce(dataset, root, heard)
    except QualityError as refused:
        verdict = read_json(prepared(dataset, root) / "verdict.json")
        page = f"{verdict_page(verdict, root)}\n\n```\n{refused}\n```"
        SHOWING.text(_key(dataset, "refused"), page, "Failed expectations")
        SHOWING.settle()
        raise


@task(task_run_name="check {dataset}", cache_policy=NO_CACHE)
def check_tables(dataset: str, root: Path) -> list[str]:
    """Read every table before it is trained on. Those that a disk has changed are deleted; their names."""
    found = open_prepared(dataset, root)
    names = damaged(found)
    for name in names:
        get_run_logger().warning("%s is not as it was prepared: it is made again", found.tables[name])
        discard(found, name, root)
    return names


@task(task_run_name="describe {dataset}", cache_policy=NO_CACHE)
def describe_dataset(dataset: str, root: Path) -> Prepared:
    """Write the artifacts: documents of every table, the verdict, where the Data Docs are, and the dataset's card."""
    found = open_prepared(dataset, root)
    counts = found.summary["tables"]
    rows = [{"table": name, **counts[name], "md5": found.digests[name]} for name in found.tables]
    SHOWING.table(_key(dataset, "tables"), rows, f"Tables of {dataset}")
    SHOWING.text(_key(dataset, "verdict"), verdict_page(found.verdict, root), f"Verdict on {dataset}")
    card = found.folder / "card.md"
    if card.is_file():
        SHOWING.text(_key(dataset, "card"), card_page(card), f"Card of {dataset}")
    SHOWING.settle()
    return found


def prepare_dataset(dataset: str, root: Path, on_step: Callable[[str], None] | None = None) -> Prepared:
    """The tasks above in order; `on_step` hears of what really runs. Raises the CursusError of the step that refused the data."""
    pin_dataset(dataset, root)
    reproduce_dataset(dataset, root, on_step)
    if check_tables(dataset, root):
        reproduce_dataset(dataset, root, on_step)
    return describe_dataset(dataset, root)


def verdict_page(verdict: dict[str, Any], root: Path) -> str:
    """The verdict as Markdown: one line a table, then every failed expectation with its rows."""
    lines = [f"# {verdict['dataset']}: {'all expectations met' if verdict['success'] else 'refused'}", ""]
    lines += ["| table | expectations | failed | of these only warned of |", "|---|---|---|---|"]
    for name, table in verdict["tables"].items():
        failed = [entry["severity"] for entry in table["expectations"] if not entry["success"]]
        lines.append(f"| {name} | {len(table['expectations'])} | {len(failed)} | {failed.count('warning')} |")
    for name, table in verdict["tables"].items():
        for entry in table["expectations"]:
            if not entry["success"]:
                about = f" on `{entry['column']}`" if entry["column"] else ""
                seen = entry["trouble"] or f"{entry['unexpected_count']:,} documents, observed {entry['observed']}"
                lines += [
                    "",
                    f"**{name}: {entry['expectation']}**{about}: {entry['meaning']}",
                    "",
                    f"Found: {seen}",
                    "",
                ]
                lines += [_shown(row, entry["column"]) for row in entry["rows"]]
    places = {"Data Docs": verdict["data_docs"], "Dataset card": f"data/prepared/{verdict['dataset']}/card.html"}
    links = [f"[{name}]({(root / place).as_uri()})" for name, place in places.items() if (root / place).is_file()]
    return "\n".join([*lines, "", " · ".join(links)])


def _shown(row: dict[str, Any], column: str) -> str:
    """A row as a line of Markdown: where it stands, what was found, how it begins."""
    found = "" if column == "text" else f", {column} = {row.get(column)}"
    text = str(row.get("text")).replace("`", "'")
    return f"- {row.get('stands_at')}{found}: `{text}`"


def card_page(card: Path) -> str:
    """The card as Markdown, without its header, and where the page of it is."""
    _, _, text = card.read_text(encoding="utf-8").removeprefix("---\n").partition("\n---\n")
    return f"[As a page]({card.with_suffix('.html').resolve().as_uri()})\n\n{text.strip()}\n"


def _key(dataset: str, what: str) -> str:
    return f"data-{dataset}-{what}".replace("_", "-")
