"""The flow that brings a dataset up to date and shows what came of it: `data`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from prefect import flow, task
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from pydantic import BaseModel, ConfigDict, Field

from pipelines.errors import QualityError
from tasks.datasets import open_prepared, refresh_pin, reproduce


class DataConfig(BaseModel):
    """Which dataset of params.yaml to prepare."""

    model_config = ConfigDict(extra="forbid")

    dataset: str = Field(default="docstrings", description="An entry under 'datasets:' in params.yaml.")


@task(task_run_name="pin {dataset}")
def pin_dataset(dataset: str, root: str) -> None:
    """Look at sources, code and packages again."""
    refresh_pin(dataset, Path(root))


@task(task_run_name="reproduce {dataset}")
def reproduce_dataset(dataset: str, root: str) -> list[str]:
    """Run the DVC stages that are out of date; returns their names."""
    ran: list[str] = []
    try:
        reproduce(dataset, Path(root), ran.append)
    except QualityError as refused:
        create_markdown_artifact(
            f"```\n{refused}\n```", key=_key(dataset, "refused"), description="Failed expectations"
        )
        raise
    return ran


@task(task_run_name="describe {dataset}")
def describe_dataset(dataset: str, root: str) -> dict[str, str]:
    """Write the artifacts: documents of every table, the verdict, where the Data Docs are. Returns the digests."""
    prepared = open_prepared(dataset, Path(root))
    counts = prepared.summary["tables"]
    create_table_artifact(
        [{"table": name, **counts[name], "md5": prepared.digests[name]} for name in prepared.tables],
        key=_key(dataset, "tables"),
        description=f"Tables of {dataset}",
    )
    create_markdown_artifact(
        verdict_page(prepared.verdict, Path(root)), key=_key(dataset, "verdict"), description=f"Verdict on {dataset}"
    )
    return prepared.digests


@flow(name="data", flow_run_name="data {config.dataset}")
def data(config: DataConfig = DataConfig()) -> dict[str, str]:  # noqa: B008  # Prefect shows the default in its form
    """Prepare a dataset: pin, collect, clean, deduplicate, decontaminate, split, validate. Returns the tables' md5.

    Raises the CursusError of the step that refused the data; nothing trains on a dataset that failed here.
    """
    root = os.environ.get("CURSUS_ROOT", str(Path.cwd()))
    pin_dataset(config.dataset, root)
    reproduce_dataset(config.dataset, root)
    return describe_dataset(config.dataset, root)


def verdict_page(verdict: dict[str, Any], root: Path) -> str:
    """The verdict as Markdown: one line a table, then every failed expectation with its rows."""
    lines = [f"# {verdict['dataset']}: {'all expectations met' if verdict['success'] else 'refused'}", ""]
    lines += ["| table | expectations | failed |", "|---|---|---|"]
    for name, table in verdict["tables"].items():
        failed = sum(not entry["success"] for entry in table["expectations"])
        lines.append(f"| {name} | {len(table['expectations'])} | {failed} |")
    for name, table in verdict["tables"].items():
        for entry in table["expectations"]:
            if not entry["success"]:
                lines += ["", f"**{name}: {entry['expectation']}** ({entry['meaning']})", ""]
                lines += [f"- `{row}`" for row in entry["rows"]]
    return "\n".join([*lines, "", f"[Data Docs]({(root / verdict['data_docs']).as_uri()})"])


def _key(dataset: str, what: str) -> str:
    return f"data-{dataset}-{what}".replace("_", "-")
