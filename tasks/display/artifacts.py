"""What a run shows in Prefect's UI: progress, links, tables. Shown by a thread, so that nobody waits for Prefect's server.

While the server is away only the latest of each thing is kept: a bar that moves needs no history. What cannot be shown in the
end is missing from the page and nowhere else.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from prefect.runtime import flow_run, task_run

PATIENCE = 5.0
"""Seconds that the end of a run waits for what is still to be shown."""

log = logging.getLogger("cursus.showing")


@dataclass(frozen=True)
class Shown:
    """One artifact of Prefect, as its API takes it."""

    key: str
    kind: str
    data: Any
    description: str
    flow_run_id: str | None
    task_run_id: str | None


class Showing:
    """The artifacts of this process's runs, each known by its run and its key."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str | None, str], Shown] = {}
        self._made: dict[tuple[str | None, str], UUID] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._busy = False

    def settle(self, patience: float = PATIENCE) -> None:
        """Wait a little for what is still to be shown."""
        deadline = time.monotonic() + patience
        with self._changed:
            while (self._waiting or self._busy) and (left := deadline - time.monotonic()) > 0:
                self._changed.wait(left)

    def progress(self, key: str, percent: float, description: str) -> None:
        """A bar; shown again under the same key, it moves."""
        self._show(key, "progress", percent, description)

    def text(self, key: str, words: str, description: str) -> None:
        """A page of Markdown."""
        self._show(key, "markdown", words, description)

    def link(self, key: str, address: str, text: str, description: str) -> None:
        """A link."""
        self._show(key, "markdown", f"[{text}]({address})", description)

    def table(self, key: str, rows: Sequence[Mapping[str, Any]], description: str) -> None:
        """A table, a mapping of column to value a row."""
        self._show(key, "table", json.dumps(list(rows)), description)

    def _show(self, key: str, kind: str, data: Any, description: str) -> None:
        flow, step = (str(run.id) if run.id else None for run in (flow_run, task_run))
        with self._changed:
            self._waiting[flow, key] = Shown(key, kind, data, description, flow, step)
            self._changed.notify_all()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="cursus-showing", daemon=True)
                self._thread.start()

    def _work(self) -> None:
        from prefect.client.orchestration import get_client

        while True:
            # before a client is made: where there is no server, nothing is tried until something is to be shown
            shown = self._next()
            try:
                with get_client(sync_client=True) as client:  # making one costs more than what it is asked for
                    while True:
                        self._put(client, shown)
                        shown = self._next()
            except Exception as error:
                log.debug("Prefect does not show %s: %s", shown.key, error)

    def _next(self) -> Shown:
        with self._changed:
            self._busy = False
            self._changed.notify_all()
            while not self._waiting:
                self._changed.wait()
            self._busy = True
            return self._waiting.pop(next(iter(self._waiting)))

    def _put(self, client: Any, shown: Shown) -> None:
        from prefect.client.schemas.actions import ArtifactCreate, ArtifactUpdate

        known = shown.flow_run_id, shown.key
        made = self._made.get(known)
        if made is not None:
            client.update_artifact(made, ArtifactUpdate(data=shown.data, description=shown.description))
            return
        value: dict[str, Any] = {
            "key": shown.key,
            "type": shown.kind,
            "data": shown.data,
            "description": shown.description,
            "flow_run_id": shown.flow_run_id,
            "task_run_id": shown.task_run_id,
        }
        self._made[known] = client.create_artifact(ArtifactCreate.model_validate(value)).id


SHOWING = Showing()
"""Of this process."""
