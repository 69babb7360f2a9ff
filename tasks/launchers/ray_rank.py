"""What a worker of Ray runs: the same rank entry point as everywhere, in the group that Ray has made."""

from __future__ import annotations

import os
from pathlib import Path

from pipelines.training import rank


def take_part(asked: dict[str, str]) -> None:
    """Be the rank that this worker's environment says, of the job in the file `order`, in the checkout at `root`.

    Raises RuntimeError after a user's mistake, which is told in the job's folder: Ray then ends the other ranks.
    """
    os.chdir(asked["root"])
    if rank.main(Path(asked["order"])):
        raise RuntimeError("the job's folder says what its mistake is")
