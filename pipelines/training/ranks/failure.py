"""What ended a job, told through its folder: a rank writes it, the launcher reads it, wherever the two run."""

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
ROOM, ROOM_BYTES = f"{SCRATCH}/room", 16384
"""In a job's folder: what gives way to such a message where the disk is full; a few blocks of any file system."""

log = logging.getLogger("cursus.training")


def keep_room(out: Path) -> None:
    """Take the few bytes on the disk that `tell_failure` will need when it is full."""
    (out / ROOM).parent.mkdir(parents=True, exist_ok=True)
    (out / ROOM).write_bytes(bytes(ROOM_BYTES))


def tell_failure(out: Path, error: CursusError) -> None:
    """Write `error` into a job's folder. The first one counts: ranks that hear of it only as a broken connection add nothing.

    Nothing is told, and nothing is left, where the disk is full and the room that was kept is taken.
    """
    (out / ROOM).unlink(missing_ok=True)
    aside = out / SCRATCH / f"{FILE}.{os.getpid()}"  # what is published must not depend on it
    try:
        aside.write_text(json.dumps({"type": type(error).__name__, "message": str(error)}), encoding="utf-8")
        if not (out / FILE).exists():
            os.replace(aside, out / FILE)
    except OSError:
        log.exception("this could not be told: %s", error)
    finally:
        aside.unlink(missing_ok=True)


def told_failure(out: Path) -> bool:
    """Whether the job of this folder has told what ended it."""
    return (out / FILE).exists()


def read_failure(out: Path, stage: str) -> CursusError | None:
    """What ended the job of `stage` in this folder, where it said so."""
    if not told_failure(out):
        return None
    told = json.loads((out / FILE).read_text(encoding="utf-8"))
    kind: type[CursusError] = getattr(errors, told["type"], StageError)
    return kind(f"stage {stage}: {told['message']}")


def forget_failure(out: Path) -> None:
    """The job is tried again."""
    (out / FILE).unlink(missing_ok=True)


def system_failure(out: Path, error: OSError) -> StoreError:
    """What a user can do about a system error in the job of this folder: nearly always the disk is full."""
    # a write does not say which file it was: then it is the disk with the least space
    fullest = min((out, Path(tempfile.gettempdir())), key=lambda place: shutil.disk_usage(place).free)
    return StoreError(f"{error.filename or fullest}: {error.strerror or error}; free some space, then run again")
