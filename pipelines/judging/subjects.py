"""What a stage that judges models is given: the models, the tables, and where to write.

`JudgingJob` is the part of a job that judging reads. It is a protocol so that judging knows no recipe: the recipe names
evaluations and probes, and stands on the floor above.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from pydantic import BaseModel, ConfigDict

from pipelines.task_families import TaskFamily


class Subject(BaseModel):
    """A finished model that a stage judges."""

    model_config = ConfigDict(frozen=True)

    stage: str
    seed: int
    fingerprint: str
    folder: Path
    answers: bool = True
    """Whether it answers the dataset's task; otherwise it was trained on plain text."""


class Threads(Protocol):
    """How a job is computed, as far as judging depends on it."""

    @property
    def threads(self) -> int:
        """Threads of the process."""


class JudgingJob(Protocol):
    """A job that judges models: what every such stage reads of it."""

    @property
    def stage_name(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def language(self) -> str: ...
    @property
    def family(self) -> TaskFamily: ...
    @property
    def subjects(self) -> Sequence[Subject]: ...
    @property
    def tables(self) -> Mapping[str, Path]: ...
    @property
    def out(self) -> Path: ...
    @property
    def runtime(self) -> Threads: ...
