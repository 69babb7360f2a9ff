"""What a job that judges models receives: the models, the tables, and the output folder.

`JudgingJob` is the part of a job that judging reads. It is a protocol because judging must not import the recipe, which
is on a higher floor: the recipe names evaluations and probes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from pydantic import BaseModel, ConfigDict

from pipelines.task_families import TaskFamily
from pipelines.task_families.labelled_tables import MAIN


class Subject(BaseModel):
    """A finished model that a stage judges."""

    model_config = ConfigDict(frozen=True)

    stage: str
    seed: int
    fingerprint: str
    folder: Path
    answers: bool = True
    """Whether it answers a task; otherwise it is a language model trained on plain text."""
    tasks: tuple[str, ...] = (MAIN,)
    """The tasks that it answers: `task`, or named tasks of the dataset."""


class Threads(Protocol):
    """The runtime of a job, as far as judging depends on it."""

    @property
    def threads(self) -> int:
        """Number of threads of the process."""


class JudgingJob(Protocol):
    """A job that judges models: the attributes that every judging stage reads."""

    @property
    def stage_name(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def language(self) -> str: ...
    @property
    def family(self) -> TaskFamily: ...
    @property
    def families(self) -> Mapping[str, TaskFamily]: ...
    @property
    def subjects(self) -> Sequence[Subject]: ...
    @property
    def tables(self) -> Mapping[str, Path]: ...
    @property
    def out(self) -> Path: ...
    @property
    def runtime(self) -> Threads: ...
