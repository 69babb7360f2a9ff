"""The tables of a dataset, in preparation and prepared, in the order of their distance from the test.

During preparation there is one folder a corpus (`general/`, `domain/`, `parallel/`, `unlabelled/`), and one file with
all parts of a task (`task.parquet`, `task.stsb.parquet`). Prepared are `general/`, `domain/`, `named/parallel/`,
`task_text/`, and one file a part (`train.parquet`, `named/stsb.train.parquet`).
"""

from __future__ import annotations

import pyarrow as pa

from pipelines.corpora.settings.dataset import DatasetSettings
from pipelines.corpora.shards.tables import TEXTS, TYPES
from pipelines.task_families import TaskFamily
from pipelines.task_families.labelled_tables import MAIN, PARTS, labelled_table, task_and_part

UNLABELLED = "unlabelled"
"""Table of plain text during preparation: text of the main task without labels."""
TASK_TEXT = "task_text"


def plain_tables(settings: DatasetSettings) -> tuple[str, ...]:
    """Tables of plain text during preparation."""
    return ("general", "domain", *settings.corpora, UNLABELLED)


def text_tables(settings: DatasetSettings) -> tuple[str, ...]:
    """Prepared tables of plain text: folders of shards."""
    return ("general", "domain", *settings.corpora, TASK_TEXT)


def example_tables(settings: DatasetSettings) -> tuple[str, ...]:
    """Prepared tables of labelled examples: single Parquet files."""
    return tuple(labelled_table(task, part) for part in PARTS for task in settings.labelled)


def all_tables(settings: DatasetSettings) -> tuple[str, ...]:
    """Prepared tables that are validated."""
    return (*text_tables(settings), *example_tables(settings))


def named_tables(settings: DatasetSettings) -> tuple[str, ...]:
    """Prepared tables of further corpora and tasks, which only some datasets have."""
    own = {"general", "domain", TASK_TEXT, *PARTS}
    return tuple(name for name in all_tables(settings) if name not in own)


def table_aliases(settings: DatasetSettings) -> dict[str, str]:
    """Second names of tables: of the main task, where it has a name of its own."""
    name = settings.main_name
    return {} if name is None else {labelled_table(name, part): part for part in PARTS}


def family_of(settings: DatasetSettings, table: str) -> TaskFamily | None:
    """The task family of a labelled table; None for plain text."""
    known = task_and_part(table)
    return settings.labelled[known[0]].family if known else None


def schema_of(settings: DatasetSettings, table: str) -> pa.Schema:
    """The schema of a table of plain text: text, source and collection, then the declared columns."""
    columns = columns_of(settings, table)
    return pa.schema([*TEXTS, *(pa.field(name, TYPES[kind]) for name, kind in columns.items())])


def columns_of(settings: DatasetSettings, table: str) -> dict[str, str]:
    """Declared columns of a table of plain text → their types."""
    return dict(settings.corpora[table].columns) if table in settings.corpora else {}


def task_file(task: str) -> str:
    """File with all parts of a task during preparation."""
    return "task.parquet" if task == MAIN else f"task.{task}.parquet"
