"""The error that ended a job, passed through the job's folder: a rank writes it, the launcher reads it, on any two
machines."""

from __future__ import annotations

import json
import logging
import os
import shutil
import tempfile
from pathlib import Path

from pipelines import errors
from pipelines.errors import CursusError, StageError, StoreError
from pipelines.lineage.results import SCRATCH

FILE = "error.json"
"""{"type", "message"}, in a job's folder."""
RESERVE, RESERVE_BYTES = f"{SCRATCH}/room", 16384
"""File in a job's folder that is deleted to make space for the error on a full disk; a few blocks of any file system.
"""

log = logging.getLogger("cursus.training")


def reserve_space(out: Path) -> None:
    """Reserve the few bytes on the disk that `record_failure` needs when the disk is full."""
    (out / RESERVE).parent.mkdir(parents=True, exist_ok=True)
    (out / RESERVE).write_bytes(bytes(RESERVE_BYTES))


def record_failure(out: Path, error: CursusError) -> None:
    """Write `error` into a job's folder, unless one is there: other ranks fail with a broken connection only, later.

    Nothing is written, and no file is left behind, where the disk is full and the reserved space is taken as well.
    """
    (out / RESERVE).unlink(missing_ok=True)
    temporary = out / SCRATCH / f"{FILE}.{os.getpid()}"  # in scratch: it must never be part of the published artifact
    try:
        temporary.write_text(json.dumps({"type": type(error).__name__, "message": str(error)}), encoding="utf-8")
        if not (out / FILE).exists():
            os.replace(temporary, out / FILE)
    except OSError:
        log.exception("this error could not be recorded in %s: %s", out, error)
    finally:
        temporary.unlink(missing_ok=True)


def has_failed(out: Path) -> bool:
    """Whether the job of this folder has recorded an error."""
    return (out / FILE).exists()


def read_failure(out: Path, stage: str) -> CursusError | None:
    """The recorded error of the job of `stage` in this folder, with the stage in its message; None if none."""
    if not has_failed(out):
        return None
    record = json.loads((out / FILE).read_text(encoding="utf-8"))
    kind: type[CursusError] = getattr(errors, record["type"], StageError)
    named = f"stage {stage}: "
    return kind(named + record["message"].removeprefix(named))


def clear_failure(out: Path) -> None:
    """Delete the recorded error, before the job is tried again."""
    (out / FILE).unlink(missing_ok=True)


def disk_error(out: Path, error: OSError) -> StoreError:
    """A StoreError with advice for a system error in the job of this folder: nearly always the disk is full."""
    # a failed write does not name its file: then report the disk with the least free space
    fullest = min((out, Path(tempfile.gettempdir())), key=lambda folder: shutil.disk_usage(folder).free)
    return StoreError(f"{error.filename or fullest}: {error.strerror or error}; free some space, then run again")
