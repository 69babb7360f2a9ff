"""Errors that a user can cause, and can therefore fix.

    CursusError                 one sentence: what is wrong, where, what to do; printed by the CLI, exit status 2
    ├── RecipeError             a recipe or a params.yaml block that cannot be planned (file, line, key)
    ├── DataError               a source, a table or a row that cannot be used (file, row or byte)
    ├── QualityError            an expectation on a dataset failed (its name, five offending rows)
    ├── StoreError              the store is locked, damaged or out of space
    ├── StageError              a stage's process ended without a result (stage, where its log is)
    └── ReproductionError       a reproduced lineage differs from its record (the first stage that differs, and why)

Any other exception that reaches the user is a bug in this package and keeps its traceback.
"""

from __future__ import annotations

from pipelines.safety.redaction import redacted


class CursusError(Exception):
    """A mistake, described so that the reader can fix it. `str(error)` is the whole message, with secrets redacted: it
    is shown in terminals, logs, Prefect and MLflow."""

    def __init__(self, message: str) -> None:
        super().__init__(redacted(message))


class RecipeError(CursusError):
    """A recipe or a settings block cannot be planned."""


class DataError(CursusError):
    """A source file, a table or a row cannot be used."""


class QualityError(CursusError):
    """A Great Expectations suite refused a table."""


class StoreError(CursusError):
    """The store is locked by another run, damaged, or the disk is full."""


class StageError(CursusError):
    """A stage's process ended without publishing a result."""


class ReproductionError(CursusError):
    """A reproduced lineage differs from its record."""
