"""Final states of flow runs whose Prefect server was unreachable when they ended, or whose process was killed: reported
at the next start.

A flow run has a record in `.cursus/flow-runs/<id>.json`, on which its process holds a lock. A record without a lock is
compared with the server's state of the run: one that is still RUNNING there, or was marked as crashed for lack of
heartbeats, gets its recorded final state; a record without a final state means that the process was killed. Task runs
end with their flow run: Prefect leaves those of a killed process RUNNING for ever.
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


class Ended(BaseModel):
    """The final state of a flow run."""

    state: State
    message: str


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
    if lock is not None:
        # held until this process ends: until then Prefect itself reports to its server
        _HELD.append(lock)
    try:
        yield
    except BaseException as error:
        if lock is not None:
            failed = isinstance(error, Exception)
            text = str(error) if isinstance(error, CursusError) else type(error).__name__
            _write(path, Ended(state="FAILED" if failed else "CANCELLED", message=f"{text} ({UNREACHABLE})"))
        raise
    else:
        if lock is not None:
            _write(path, Ended(state="COMPLETED", message=UNREACHABLE))


def report_ended_runs(root: Path, api: str | None = None, auth: str | None = None) -> int:
    """Correct a server's states of flow runs that have ended; returns how many it corrected. Never raises.

    Without an address, uses the server that this process's own flow run reports to.
    """
    from prefect.client.orchestration import SyncPrefectClient, get_client

    records = sorted(_folder(root).glob("*.json"))
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

    text = path.read_text(encoding="utf-8")
    _end_tasks(client, path.stem)
    try:
        ended = Ended.model_validate_json(text)
    except ValidationError:
        ended = None
    try:
        known = client.read_flow_run(path.stem).state
    except ObjectNotFound:
        return 0
    over = known is not None and known.is_final()
    if over and (ended is None or known.type != StateType.CRASHED or ended.state != "COMPLETED"):
        return 0
    state = (
        PrefectState(type=StateType.CRASHED, message=KILLED)
        if ended is None
        else PrefectState(type=StateType(ended.state), message=ended.message)
    )
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


def _write(path: Path, ended: Ended) -> None:
    # in place, because the lock is on this file; a truncated record reads as none
    with suppress(OSError), path.open("r+", encoding="utf-8") as file:
        file.truncate()
        file.write(ended.model_dump_json())
        file.flush()
        os.fsync(file.fileno())


def _folder(root: Path) -> Path:
    return state_folder(root) / "flow-runs"
