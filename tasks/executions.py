"""One small file an execution, written before its first run is opened: who runs it, and whether it ended.

A killed process leaves its MLflow runs RUNNING for ever. This record lets the next execution tell a run that still works
from one whose process is gone.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, Self

import psutil
from pydantic import BaseModel

from tasks.environment import state_folder
from tasks.processes import Process


class Execution(BaseModel):
    """What is on record of one execution, in `.cursus/executions/<id>.json`."""

    id: str
    recipe: str
    dataset: str
    process: Process
    run_id: str | None = None
    """The parent run in MLflow."""
    status: Literal["FINISHED", "FAILED", "KILLED"] | None = None
    ended: bool = False
    """Whether its runs in MLflow are closed."""
    folder: Path

    @classmethod
    def begin(cls, root: Path, identifier: str, recipe: str, dataset: str) -> Self:
        """Put an execution of the calling process on record."""
        process = Process(pid=os.getpid(), created=psutil.Process().create_time())
        execution = cls(id=identifier, recipe=recipe, dataset=dataset, process=process, folder=_folder(root))
        execution.record()
        return execution

    @classmethod
    def abandoned(cls, root: Path) -> list[Self]:
        """The executions that did not close their runs and whose process is gone, oldest first."""
        known = [cls.model_validate_json(path.read_bytes()) for path in sorted(_folder(root).glob("*.json"))]
        return [execution for execution in known if not execution.ended and not execution.process.alive()]

    def record(
        self,
        run_id: str | None = None,
        status: Literal["FINISHED", "FAILED", "KILLED"] | None = None,
        ended: bool = False,
    ) -> None:
        """Remember what is given, and write the record."""
        self.run_id = run_id or self.run_id
        self.status = status or self.status
        self.ended = ended or self.ended
        self.folder.mkdir(parents=True, exist_ok=True)
        aside = self.folder / f"{self.id}.part"
        aside.write_text(self.model_dump_json(indent=1), encoding="utf-8")
        os.replace(aside, self.folder / f"{self.id}.json")


def _folder(root: Path) -> Path:
    return state_folder(root) / "executions"
