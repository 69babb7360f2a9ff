"""The folder of one job: the names of its files, and the result that a finished job reports."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

RESULT = "result.json"
"""Written into a job's folder after everything else: its presence, not an exit code, means success."""
SCRATCH = "scratch"
"""Folder inside a job's folder for files that only resuming needs, not the result."""
CHECKPOINTS = "checkpoints"
"""Folder inside SCRATCH that holds a job's checkpoints."""
COMPILED = "compiled"
"""Folder next to the tokenised corpora for files that an accelerator compiled for this machine."""
ACTIVITY = "activity"
"""File inside SCRATCH with a line about what a job is doing while it writes no metrics."""
SAMPLE = "validation/sample"
"""Metric: examples on which the validations of a training were measured, where they are not all."""
EXAMPLES = "validation/examples"
"""Metric: examples on which the scores of such a training were measured at its end."""
METRICS = "metrics.jsonl"
"""File with one JSON object per line, appended while a job runs."""
PROBES = "probes.json"
"""The records of a probe stage."""


class Result(BaseModel):
    """What a finished job reports."""

    metrics: dict[str, Any] = {}
    tokens: int = 0
    steps: int = 0
    parameters: int = 0
    resumed_from_step: int | None = None
    passed_over: tuple[str, ...] = ()
    """Descriptions of the damaged checkpoints, newer than that of `resumed_from_step`, that were skipped."""
    compiled: bool = False
    """Whether an accelerator was used in training."""
    device: str | None = None
    """The device that computed it, which may be on another machine than the flow."""
