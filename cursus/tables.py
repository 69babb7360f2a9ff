"""`cursus.dataset`: prepared tables."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cursus.project import Root, prepared_root
from pipelines.components import did_you_mean
from pipelines.errors import DataError

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True)
class Dataset:
    """A dataset that passed its expectations."""

    name: str
    language: str
    task: str
    """Name of the task family of its main task."""
    labels: tuple[str, ...]
    """The closed set of answers or tags in the training table; empty when answers are free text."""
    tables: Mapping[str, Path]
    """Table → Parquet file, or folder of shards: `general`, `domain`, `task_text`, `train`, `validation`, `test`, …"""
    digests: Mapping[str, str]
    """Table → md5, as DVC recorded it."""
    card: Path
    """The page that describes it, with what was removed and why."""

    def read(self, table: str) -> pyarrow.Table:
        """A table in memory; `.to_pandas()` makes it a data frame. Raises DataError for an unknown name."""
        import pyarrow.dataset

        if table not in self.tables:
            raise DataError(f"the dataset {self.name!r} has no table {table!r}.{did_you_mean(table, self.tables)}")
        return pyarrow.dataset.dataset(self.tables[table]).to_table()


def dataset(name: str | None = None, *, prepare: bool = True, root: Root = None) -> Dataset:
    """The dataset called `name` in params.yaml (default: the project's), brought up to date.

    With `prepare=False` it is the last prepared state, without running anything. Progress is written to standard
    error. Raises CursusError for a mistake in the settings or the data.
    """
    folder = prepared_root(root)
    from tasks.datasets.lock import prepare_in_turn
    from tasks.datasets.planning import resolve_request
    from tasks.datasets.prepared import open_prepared

    def notify(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    chosen = resolve_request(folder, name, None, (), False).dataset
    prepared = prepare_in_turn(chosen, folder, notify, notify) if prepare else open_prepared(chosen, folder)
    return Dataset(
        name=prepared.name,
        language=prepared.language,
        task=prepared.family,
        labels=tuple(prepared.labels),
        tables=dict(prepared.tables),
        digests=dict(prepared.digests),
        card=prepared.folder / "card.html",
    )
