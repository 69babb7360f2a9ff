"""run(job): compute one job. Reads its argument, writes under `job.out`, touches nothing else.

No clock, no network, no environment variable is read; everything that a result depends on is in the job.
"""

from __future__ import annotations

import importlib
from typing import cast

from pipelines.lineage import hardware
from pipelines.lineage.disk import write_text_atomically
from pipelines.lineage.locks import Lock
from pipelines.lineage.results import RESULT, SCRATCH, Result
from pipelines.recipe.entries import entry_of
from pipelines.recipe.job import Job
from pipelines.training.ranks import process_group


def run(job: Job) -> Result:
    """Compute `job`, write its result file last, and return the result. A finished job is not computed again.

    With several ranks, each calls this function, and rank 0 writes.
    """
    # a process of a killed flow may still be writing its last checkpoint
    lock = Lock.take(job.out / SCRATCH / "lock", wait=True) if process_group.rank() == 0 else None
    try:
        return _run(job)
    finally:
        if lock is not None:
            lock.release()


def _run(job: Job) -> Result:
    done = job.out / RESULT
    if done.exists():
        return Result.model_validate_json(done.read_bytes())
    module, _, function = entry_of(job.stage).partition(":")
    result = cast("Result", getattr(importlib.import_module(module), function)(job))
    result = result.model_copy(update={"device": hardware.device_name(job.runtime.accelerator)})
    if process_group.rank() > 0:
        return result
    # a result that is cut off by a full disk must not be published
    write_text_atomically(done, result.model_dump_json(), job.out / SCRATCH / RESULT)
    return result
