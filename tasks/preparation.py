"""Prefect task: datasets ready for training, or the reason why not."""

from __future__ import annotations

from pathlib import Path

from prefect import task
from prefect.artifacts import create_markdown_artifact
from prefect.cache_policies import NO_CACHE

from tasks.datasets import Prepared, prepare


@task(name="data", task_run_name="data {dataset}", cache_policy=NO_CACHE)
def prepare_data(dataset: str, root: Path) -> Prepared:
    """Bring a dataset up to date with DVC; Great Expectations decides whether it may be used.

    Raises DataError for sources that cannot be read, QualityError when an expectation fails.
    """
    prepared = prepare(dataset, root)
    docs = (root / "data" / "docs" / dataset / "index.html").resolve()
    rows = "\n".join(f"| {name} | {prepared.digests[name]} |" for name in prepared.tables)
    create_markdown_artifact(
        f"Validated tables of **{dataset}** ({prepared.language}); [Data Docs]({docs.as_uri()})\n\n"
        f"| table | md5 |\n|---|---|\n{rows}\n",
        key="data",
        description="What the execution trains on",
    )
    return prepared
