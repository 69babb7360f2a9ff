"""Run a flow in a separate process and session: `python -m flows.process.execute FLOW CONFIG RESULT`.

Prefect's temporary server is a child of the process that runs the flow. In a terminal, Ctrl-C reaches both, the server
dies first, and the flow would spend minutes reporting to a dead server that it was stopped. In a separate session,
only this process is interrupted; it stops training cleanly, and its server receives the final state.

    flows.process.execute ─┬─ uvicorn            the server starts,
                           ├─ training worker    torch is imported,
                           └─ imports Prefect    all three at the same time
"""

from __future__ import annotations

import atexit
import importlib
import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, Any, NoReturn, get_type_hints

from pydantic import BaseModel

from flows.process.recoverable import full_disk, recoverable, server_gone
from flows.process.stopping import INTERRUPTED, accept_signals, run_flow
from pipelines import errors
from pipelines.errors import CursusError, StageError
from pipelines.messages.translation import (
    LANGUAGE_VARIABLE,
    in_language,
    language,
    message,
    preferred_language,
    translatable,
)
from pipelines.safety.garbage_collection import collect_rarely
from pipelines.safety.parent_process import on_parent_exit
from tasks.environment import project_root
from tasks.servers.environment import DETECTED, environment_without_servers, prepare_environment
from tasks.servers.temporary_server import TemporaryServer

SERVER_STOPPED = os.EX_TEMPFAIL
"""Exit status of a flow that has not begun, because the server that it found running was stopped since."""
SERVER_GONE = translatable(
    "Prefect's server became unreachable during the run. All finished steps are in the store; the final state of the "
    "run is reported to Prefect when the next run starts."
)


def execute(config: dict[str, Any], root: Path, flow: str = "regime") -> dict[str, Any]:
    """Run `flow` (of the module of the same name) in a separate process and return its result as JSON.

    Raises the flow's CursusError, KeyboardInterrupt (`Terminated` after SIGTERM) when it was stopped, SystemExit after
    an unexpected error.
    """
    with tempfile.TemporaryFile() as answer:  # it has no name: nothing is left of it, however this process ends
        status = _run(flow, config, root, answer)
        if status == SERVER_STOPPED:  # the second process finds no server, and starts one of its own
            status = _run(flow, config, root, answer)
        if status == INTERRUPTED:  # by someone else
            raise KeyboardInterrupt
        if status < 0:
            often = ", as the system does when memory runs out" if -status == signal.SIGKILL else ""
            raise StageError(
                f"the run was killed by {signal.Signals(-status).name}{often}; finished stages are kept, and the same "
                "command continues from the last checkpoint"
            )
        answer.seek(0)
        written = answer.read()
        if not written:
            raise SystemExit(status)  # an unexpected error, whose traceback has been printed
        result: dict[str, Any] = json.loads(written)
    if status:
        kind: type[CursusError] = getattr(errors, result["type"])
        raise kind(result["message"])
    return result


def _run(flow: str, config: dict[str, Any], root: Path, answer: IO[bytes]) -> int:
    """Run the process of a flow, which writes to `answer`; returns its exit status."""
    command = [sys.executable, "-m", "flows.process.execute", flow, json.dumps(config), str(answer.fileno())]
    return run_flow(
        lambda: subprocess.Popen(
            command,
            cwd=root,
            env=environment_without_servers() | {LANGUAGE_VARIABLE: language()},
            stdin=subprocess.PIPE,
            start_new_session=True,
            pass_fds=(answer.fileno(),),
        )
    )


def main(name: str, config: str, answer: int) -> int:
    """Run the flow `name` with the JSON configuration `config`; write its result or CursusError to the open file
    `answer`."""
    os.set_inheritable(answer, False)
    _end_children_with_this()
    on_parent_exit(lambda: os.kill(os.getpid(), signal.SIGINT))
    root = project_root()
    # a line that a server which has ended does not take: reported by SERVER_GONE, not by fragments among the progress
    logging.raiseExceptions = False
    collect_rarely()
    try:
        accept_signals()
        prepare_environment(root)
        from flows.process.outcome import LAST

        server = TemporaryServer.start_if_needed(root)
        _warm(root)
        flow = getattr(importlib.import_module(f"flows.{name}"), name)
        configuration = get_type_hints(flow.fn)["config"].model_validate_json(config)
        if server is not None:
            server.wait()
    except KeyboardInterrupt:
        return _exit_now(INTERRUPTED, None)  # the flow has not begun
    except Exception as error:
        own = error if isinstance(error, CursusError) else recoverable(error, root)
        if (known := full_disk(error, root) or own) is None:
            raise
        return _exit_now(_answer(None, known, answer), None)  # the flow has not begun
    try:
        flow(configuration)
    except BaseException as error:
        if error is not LAST.error:
            if LAST.error is None and LAST.result is None:
                if isinstance(error, KeyboardInterrupt):
                    return INTERRUPTED
                if (known := recoverable(error, root)) is None:
                    raise
                if DETECTED and server_gone(error) is not None:
                    return _exit_now(SERVER_STOPPED, None)
                return _exit_now(_answer(None, known, answer))
            # Prefect's engine raised this error instead of returning the outcome
            reason = None if isinstance(error, KeyboardInterrupt) else SERVER_GONE
            return _exit_now(_answer(LAST.result, LAST.error, answer), reason)
    return _answer(LAST.result, LAST.error, answer)


def _warm(root: Path) -> None:
    """Start the processes that training will need. They end with this process, used or not."""
    from tasks.launchers.settings import load_training

    load_training(root).launcher.warm(root)


def _answer(result: BaseModel | None, error: BaseException | None, answer: int) -> int:
    """Write the result or error for the caller; returns the exit status."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if error is not None:
        error = recoverable(error, project_root()) or error
    if isinstance(error, CursusError):
        _write(json.dumps({"type": type(error).__name__, "message": str(error)}), answer)
        return 2
    if error is not None:
        raise error
    assert result is not None
    _write(result.model_dump_json(), answer)
    return 0


def _write(text: str, answer: int) -> None:
    with open(answer, "w", encoding="utf-8") as file:
        file.write(text)


def _exit_now(status: int, reason: str | None = SERVER_GONE) -> NoReturn:
    """Exit without Prefect's shutdown, which would spend half a minute sending its last log lines to a dead server."""
    if reason is not None:
        print(message(reason), file=sys.stderr, flush=True)
    os._exit(status)


def _end_children_with_this() -> None:
    """End Prefect's temporary server together with this process, even if this process is killed.

    A shell outside the process group waits for the end of a pipe that only this process holds open.
    """
    read, _held_open = os.pipe()
    with open(read, "rb") as end:
        subprocess.Popen(
            ["/bin/sh", "-c", 'read line; kill -TERM "-$0" 2>/dev/null', str(os.getpgrp())],
            stdin=end,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )


def _end(status: int) -> None:
    """Exit without the interpreter's finalisation, which takes as long as importing all modules."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    ended: list[int] = []
    # exit handlers run in reverse order of registration: all others have run by then
    atexit.register(lambda: _end(ended[0]) if ended else None)
    with in_language(preferred_language()):
        ended.append(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
    sys.exit(ended[0])
