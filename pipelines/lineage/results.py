"""The folder of one job: the names of its files, and what a finished job reports of itself."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

RESULT = "result.json"
"""Written into a job's folder after everything else: its presence, not an exit code, means success."""
SCRATCH = "scratch"
"""Folder inside a job's folder for what resuming needs and the result does not."""
CHECKPOINTS = "checkpoints"
"""Folder inside SCRATCH that holds a job's checkpoints."""
COMPILED = "compiled"
"""Folder beside the tokenised corpora for what an accelerator compiled for this machine."""
METRICS = "metrics.jsonl"
"""One JSON object a line, appended while a job runs."""
PROBES = "probes.json"
"""The records of a probe stage."""


class Result(BaseModel):
    """What a finished job reports of itself."""

    metrics: dict[str, Any] = {}
    tokens: int = 0
    steps: int = 0
    parameters: int = 0
    resumed_from_step: int | None = None
    passed_over: tuple[str, ...] = ()
    """Why each newer checkpoint than that one was not used."""
    compiled: bool = False
    """Whether an accelerator took part in training."""
    device: str | None = None
    """The device that computed it, which may be on another machine than the flow."""
