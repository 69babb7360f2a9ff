"""run(job): what a launcher starts. Reads its argument, writes under `job.out`, touches nothing else.

No clock, no network, no environment variable is read; whatever a result depends on is in the job.
"""

from __future__ import annotations

import importlib
from typing import cast

from pipelines.lineage import hardware
from pipelines.lineage.disk import write_whole
from pipelines.lineage.locks import Lock
from pipelines.lineage.results import RESULT, SCRATCH, Result
from pipelines.recipe.entries import ENTRY
from pipelines.recipe.job import Job
from pipelines.training.ranks import process_group as group


def run(job: Job) -> Result:
    """Compute `job`, write its result file last, and return it. A finished job is not computed twice.

    Where several ranks compute it together, each calls this, and the first writes.
    """
    # a process of a flow that was killed may still be leaving its last checkpoint
    alone = Lock.take(job.out / SCRATCH / "lock", wait=True) if group.rank() == 0 else None
    try:
        return _run(job)
    finally:
        if alone is not None:
            alone.release()


def _run(job: Job) -> Result:
    done = job.out / RESULT
    if done.exists():
        return Result.model_validate_json(done.read_bytes())
    module, _, function = ENTRY[job.stage.kind].partition(":")
    result = cast("Result", getattr(importlib.import_module(module), function)(job))
    result = result.model_copy(update={"device": hardware.described(job.runtime.accelerator)})
    if group.rank() > 0:
        return result
    # half of it, on a disk that is full, must not be published
    write_whole(done, result.model_dump_json(), job.out / SCRATCH / RESULT)
    return result
