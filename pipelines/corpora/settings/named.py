"""Settings under `tasks:` and `corpora:` of a dataset: further labelled tasks and further corpora, by name.

tasks:
  cola: {train: cola/train.jsonl, test: cola/test.jsonl}
  stsb: {family: pair_regression, train: sts/train.jsonl, test: sts/test.jsonl}
corpora:
  reviews: [reviews/*.jsonl]                                                 # plain text, like `general`
  parallel: {path: pairs.jsonl, columns: {translation: string}}              # further columns beside `text`
  pages: {sources: [a.jsonl, b.jsonl], columns: {tokens: list<string>, boxes: list<list<int64>>}}

A name becomes a word of `corpus:` in recipes, and names files: `named/parallel/`, `named/stsb.train.parquet`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NoReturn, Self

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from pipelines.corpora.settings.sources import FORM_COLUMNS, DocumentationSource, ReadSource, Sources, StrictSettings
from pipelines.corpora.settings.task import FileTask, Task

ColumnType = Literal[
    "string",
    "double",
    "int64",
    "list<string>",
    "list<int64>",
    "list<list<string>>",
    "list<list<int64>>",
    "list<list<double>>",
]
"""Type of a declared column, as a task family writes its own."""
RESERVED = frozenset(
    ["general", "domain", "task", "task_text", "unlabelled", "general_heldout", "train", "validation", "test"]
)
"""Words that recipes and data steps use for something else."""
MOST_NAMES = 30
"""Largest number of named tasks and corpora of a dataset: the verdict of deduplication is one byte for each text."""
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_COLUMN = re.compile(r"[A-Za-z_]\w{0,59}")


class NamedCorpus(StrictSettings):
    """A corpus of plain text; each text may carry the values of declared columns."""

    sources: Sources
    columns: dict[str, ColumnType] = Field(default={})
    """Column → its type. Every record has a value of each; what changes the words of a text drops the text."""

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        """Accept sources alone, and the keys of a single source next to `columns`."""
        if not isinstance(value, Mapping):
            return {"sources": value}
        if "sources" in value or not value:
            return value
        declared = value.get("columns")
        source = {key: item for key, item in value.items() if key != "columns" or not isinstance(declared, Mapping)}
        return {"sources": [source]} | ({"columns": declared} if isinstance(declared, Mapping) else {})

    @model_validator(mode="after")
    def _columns_can_be_read(self) -> Self:
        for name in self.columns:
            if not _COLUMN.fullmatch(name):
                _refuse(f"column {name!r}: use letters, digits and '_', a letter first", "columns", name)
            if name in ("text", "source", "collection"):
                _refuse(f"every corpus has a column {name!r}; the declared ones stand beside it", "columns", name)
        for source in self.sources if self.columns else []:
            if isinstance(source, DocumentationSource):
                _check_documentation(source, self.columns)
            elif source.format is not None:
                _refuse(f"{source.location} has texts only, no columns; name files of jsonl, csv, tsv or parquet")
        for source in self.sources:
            if isinstance(source, ReadSource) and (
                unknown := [key for key in source.values if key not in self.columns]
            ):
                _refuse(f"values: {unknown[0]!r} is not a declared column; add it to columns", "columns")
        return self


def _check_documentation(source: DocumentationSource, declared: Mapping[str, str]) -> None:
    for name, kind in declared.items():
        if source.columns.get(name) != kind:
            has = ", ".join(f"{name}: {kind}" for name, kind in source.columns.items())
            some = " or ".join(f"form: {form}" for form in FORM_COLUMNS)
            known = f"has the columns {{{has}}}" if has else f"has texts only, no columns; others have some ({some})"
            _refuse(f"the documentation {source.location!r} {known}", "columns", name)


def _refuse(message: str, *path: str) -> NoReturn:
    raise PydanticCustomError("named", "{message}", {"message": message, "path": path})


def _with_content(value: Any) -> Any:
    if isinstance(value, Mapping) and not value:
        _refuse("is empty; give it an entry, or remove the key")
    return value


NamedTasks = Annotated[dict[str, Task], BeforeValidator(_with_content)]
NamedCorpora = Annotated[dict[str, NamedCorpus], BeforeValidator(_with_content)]


def check_names(tasks: Mapping[str, Task], corpora: Mapping[str, NamedCorpus], main: str | None) -> None:
    """Raise PydanticCustomError, with the path of the key, for a name that cannot be used, or a task without a table
    for its unlabelled text.

    `main` is the name of the task that is the main one, if it is among `tasks`.
    """
    for key, names in (("tasks", tasks), ("corpora", corpora)):
        for name in names:
            if not _NAME.fullmatch(name):
                message = (
                    f"{name!r}: use up to 40 lower-case letters, digits, '-' and '_', a letter first (it names files)"
                )
                _refuse(message, key, name)
            if name in RESERVED:
                _refuse(f"{name!r} already means something in recipes; choose another name", key, name)
    if both := [name for name in corpora if name in tasks]:
        _refuse(f"there is a task {both[0]!r} too; a recipe could not tell them apart, rename one", "corpora", both[0])
    if len(tasks) + len(corpora) > MOST_NAMES:
        _refuse(f"more than {MOST_NAMES} named tasks and corpora; divide them among several datasets", "tasks")
    for name, task in tasks.items():
        if name != main and isinstance(task, FileTask) and task.unlabelled:
            message = "only the main task has a table for it (task_text); make it a corpus under corpora"
            _refuse(message, "tasks", name, "unlabelled")
