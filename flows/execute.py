"""A flow in a process and session of its own: `python -m flows.execute FLOW CONFIG RESULT`.

Prefect's temporary server is a child of the process that runs the flow. In a terminal, Ctrl-C reaches both, the server dies
first, and the flow would spend minutes telling a dead server that it was stopped. Apart from the terminal only this
process is interrupted, ends its training in order, and its server hears of it.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any, get_type_hints

from pipelines import errors
from pipelines.errors import CursusError

INTERRUPTED = 130


def execute(config: dict[str, Any], root: Path, flow: str = "regime") -> dict[str, Any]:
    """Run `flow` (of the module of its name) apart, and wait; what it answered, as JSON.

    Raises the CursusError it ended with, KeyboardInterrupt when stopped, SystemExit after a bug of ours.
    """
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "result.json"
        child = subprocess.Popen(
            [sys.executable, "-m", "flows.execute", flow, json.dumps(config), str(answer)],
            cwd=root,
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        while True:
            try:
                status = child.wait()
                break
            except KeyboardInterrupt:
                child.send_signal(signal.SIGINT)
        if status == INTERRUPTED:
            raise KeyboardInterrupt
        if not answer.exists():
            raise SystemExit(status)  # a bug of ours: its traceback has been printed
        told: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
    if status:
        kind: type[CursusError] = getattr(errors, told["type"])
        raise kind(told["message"])
    return told


def main(name: str, config: str, answer: Path) -> int:
    """Run the flow `name` with the configuration in `config`; its result or a user's mistake is written to `answer`."""
    threading.Thread(target=_stop_with_caller, daemon=True).start()
    flow = getattr(importlib.import_module(f"flows.{name}"), name)
    asked = get_type_hints(flow.fn)["config"]
    try:
        result = flow(asked.model_validate_json(config))
    except CursusError as error:
        answer.write_text(json.dumps({"type": type(error).__name__, "message": str(error)}), encoding="utf-8")
        return 2
    except KeyboardInterrupt:
        return INTERRUPTED
    answer.write_text(result.model_dump_json(), encoding="utf-8")
    return 0


def _stop_with_caller() -> None:
    """The caller holds standard input open; when it is gone, however it went, this process is interrupted."""
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGINT)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], Path(sys.argv[3])))
