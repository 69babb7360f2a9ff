"""The process a launcher starts: `python -m pipelines.training.worker jobs.json`.

Jobs run one after the other and share the start-up cost of torch. What goes wrong is written into the job's folder for
the launcher to tell; a job that is finished has its result file. Standard input is a pipe that the launcher holds open:
when the launcher dies, however it dies, the pipe closes and this process ends too, leaving its checkpoints.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path

ERROR = "error.json"
"""Written into a job's folder when a user's mistake ended it: {"type", "message"}."""
MISTAKE = 2
"""Exit status after such a mistake."""


def main(path: Path) -> int:
    """Run the jobs listed in the file `path`; the exit status."""
    threading.Thread(target=_end_with_launcher, daemon=True).start()
    import torch

    from pipelines.errors import CursusError
    from pipelines.job import Job
    from pipelines.training.run import run

    for value in json.loads(path.read_text(encoding="utf-8")):
        job = Job.model_validate(value)
        torch.set_num_threads(job.runtime.threads)
        try:
            run(job)
        except CursusError as error:
            told = {"type": type(error).__name__, "message": str(error)}
            (job.out / ERROR).write_text(json.dumps(told), encoding="utf-8")
            return MISTAKE
        except OSError as error:
            # the one system error that a user can mend: a full disk
            told = {"type": "StoreError", "message": f"{error.filename or job.out}: {error.strerror}; free some space, then run again"}
            (job.out / ERROR).write_text(json.dumps(told), encoding="utf-8")
            raise
    return 0


def _end_with_launcher() -> None:
    while sys.stdin.buffer.read(1):
        pass
    os._exit(143)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
