"""Final states of flow runs whose Prefect server was unreachable when they ended, or whose process was killed: reported
at the next start.

A flow run has a record in `.cursus/flow-runs/<id>.json`, on which its process holds a lock. A record without a lock is
compared with the server's state of the run: one that is still RUNNING there, or was marked as crashed for lack of
heartbeats, gets its recorded final state; a record without a final state means that the process was killed. Task runs
end with their flow run: Prefect leaves those of a killed process RUNNING for ever. A run that is retried keeps its id:
the record of an attempt says nothing of a later one.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ValidationError

from pipelines.errors import CursusError
from pipelines.lineage.locks import Lock
from tasks.environment import state_folder

State: TypeAlias = Literal["COMPLETED", "FAILED", "CANCELLED"]
UNREACHABLE = "Prefect's server was unreachable when the run ended."
KILLED = "The process was killed, or the machine went down; finished steps are in the store."
TASK_ENDED = "Its flow run has ended."

log = logging.getLogger("cursus.flow_runs")
_HELD: list[Lock] = []


class FlowAttempt(BaseModel):
    """A flow run from one start of its process to its end."""

    number: int
    """Prefect's count of the starts of the run, this one included."""
    state: State | None = None
    """Its final state; None until it has ended."""
    message: str = KILLED


@contextmanager
def recorded(root: Path) -> Iterator[None]:
    """Record the final state of the current flow run. Does nothing outside a flow run."""
    from prefect.runtime import flow_run

    identifier = flow_run.id
    path = _folder(root) / f"{identifier}.json"
    lock = None
    if identifier:
        with suppress(OSError):
            lock = Lock.take(path)
    number = int(flow_run.run_count or 1)
    if lock is not None:
        _write(path, FlowAttempt(number=number))
        # held until this process ends: until then Prefect itself reports to its server
        _HELD.append(lock)
    try:
        yield
    except BaseException as error:
        if lock is not None:
            failed = isinstance(error, Exception)
            text = str(error) if isinstance(error, CursusError) else type(error).__name__
            state: State = "FAILED" if failed else "CANCELLED"
            _write(path, FlowAttempt(number=number, state=state, message=f"{text} ({UNREACHABLE})"))
        raise
    else:
        if lock is not None:
            _write(path, FlowAttempt(number=number, state="COMPLETED", message=UNREACHABLE))


def report_ended_runs(root: Path, api: str | None = None, auth: str | None = None) -> int:
    """Correct a server's states of flow runs that have ended; returns how many it corrected. Never raises.

    Without an address, uses the server that this process's own flow run reports to.
    """
    from prefect.client.orchestration import SyncPrefectClient, get_client
    from prefect.runtime import flow_run

    # not that of an earlier attempt of the run that begins here
    records = sorted(path for path in _folder(root).glob("*.json") if path.stem != str(flow_run.id))
    corrected = 0
    if not records:
        return 0
    try:
        with SyncPrefectClient(api, auth_string=auth) if api else get_client(sync_client=True) as client:
            for path in records:
                lock = Lock.take(path)
                if lock is not None:
                    corrected += _correct(path, client)
                    lock.release(delete=True)
    except Exception as error:
        log.debug("final states of flow runs were not reported to Prefect: %s", error)
    return corrected


def _correct(path: Path, client: Any) -> int:
    from prefect.client.schemas.objects import State as PrefectState
    from prefect.client.schemas.objects import StateType
    from prefect.exceptions import ObjectNotFound

    try:
        attempt = FlowAttempt.model_validate_json(path.read_text(encoding="utf-8"))
    except ValidationError:
        attempt = None
    try:
        run = client.read_flow_run(path.stem)
    except ObjectNotFound:
        return 0
    known = run.state
    later = attempt is not None and run.run_count > attempt.number
    if later or (known is not None and known.type in (StateType.SCHEDULED, StateType.PENDING)):
        return 0  # it is being retried
    _end_tasks(client, path.stem)
    ended = attempt.state if attempt is not None else None
    if known is not None and known.is_final() and (known.type != StateType.CRASHED or ended != "COMPLETED"):
        return 0
    message = attempt.message if attempt is not None else KILLED
    state = PrefectState(type=StateType(ended) if ended is not None else StateType.CRASHED, message=message)
    client.set_flow_run_state(path.stem, state, force=True)
    return 1


def _end_tasks(client: Any, identifier: str) -> None:
    """Mark the task runs of a flow run that are not in a final state as crashed."""
    from prefect.client.schemas.filters import FlowRunFilter, TaskRunFilter
    from prefect.client.schemas.objects import TERMINAL_STATES, StateType
    from prefect.client.schemas.objects import State as PrefectState

    unfinished = [state.value for state in StateType if state not in TERMINAL_STATES]
    runs = client.read_task_runs(
        flow_run_filter=FlowRunFilter.model_validate({"id": {"any_": [identifier]}}),
        task_run_filter=TaskRunFilter.model_validate({"state": {"type": {"any_": unfinished}}}),
    )
    for run in runs:
        state = PrefectState(type=StateType.CRASHED, message=TASK_ENDED)
        client.set_task_run_state(run.id, state, force=True)


def _write(path: Path, attempt: FlowAttempt) -> None:
    # in place, because the lock is on this file; a truncated record reads as none
    with suppress(OSError), path.open("r+", encoding="utf-8") as file:
        file.truncate()
        file.write(attempt.model_dump_json())
        file.flush()
        os.fsync(file.fileno())


def _folder(root: Path) -> Path:
    return state_folder(root) / "flow-runs"
