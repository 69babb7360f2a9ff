"""Artifacts of runs in Prefect's UI: progress, links, tables. Published by a thread, so that no caller waits for the
server. Prefect shows descriptions and the cells of tables as Markdown, too: what they say is escaped here.

While the server is unavailable, only the latest version of each artifact is kept: a progress bar needs no history. What
cannot be published in the end is missing from Prefect's page and from nowhere else.
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

from pipelines.safety.markdown import inert
from pipelines.safety.redaction import redacted

PATIENCE = 5.0
"""Seconds that the end of a run waits for unpublished artifacts."""

log = logging.getLogger("cursus.artifacts")


@dataclass(frozen=True)
class PrefectArtifact:
    """One artifact, with the fields of Prefect's API."""

    key: str
    kind: str
    data: Any
    description: str
    flow_run_id: str | None
    task_run_id: str | None


class ArtifactPublisher:
    """Publishes the artifacts of this process's runs, each identified by its run and its key."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str | None, str], PrefectArtifact] = {}
        self._created: dict[tuple[str | None, str], UUID] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._busy = False

    def flush(self, patience: float = PATIENCE) -> None:
        """Wait until everything is published, at most `patience` seconds."""
        deadline = time.monotonic() + patience
        with self._changed:
            while (self._waiting or self._busy) and (left := deadline - time.monotonic()) > 0:
                self._changed.wait(left)

    def progress(self, key: str, percent: float, description: str) -> None:
        """Publish a progress bar; a second call with the same key moves it."""
        self._put(key, "progress", percent, description)

    def text(self, key: str, words: str, description: str) -> None:
        """Publish a page of Markdown, whose texts from datasets have been escaped."""
        self._put(key, "markdown", redacted(words), description)

    def link(self, key: str, address: str, text: str, description: str) -> None:
        """Publish a link."""
        self._put(key, "markdown", redacted(f"[{inert(text)}](<{address}>)"), description)

    def table(self, key: str, rows: Sequence[Mapping[str, Any]], description: str) -> None:
        """Publish a table; each row maps columns to values."""
        shown = [{inert(name): _cell(value) for name, value in row.items()} for row in rows]
        self._put(key, "table", json.dumps(shown), description)

    def _put(self, key: str, kind: str, data: Any, description: str) -> None:
        description = inert(redacted(description))
        flow, step = (str(run.id) if run.id else None for run in (flow_run, task_run))
        with self._changed:
            self._waiting[flow, key] = PrefectArtifact(key, kind, data, description, flow, step)
            self._changed.notify_all()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="cursus-artifacts", daemon=True)
                self._thread.start()

    def _work(self) -> None:
        from prefect.client.orchestration import get_client

        while True:
            # before the client is made: without a server, nothing is tried until there is an artifact
            artifact = self._next()
            try:
                with get_client(sync_client=True) as client:  # making a client costs more than a request
                    while True:
                        self._publish(client, artifact)
                        artifact = self._next()
            except Exception as error:
                log.debug("Prefect does not accept the artifact %s: %s", artifact.key, error)

    def _next(self) -> PrefectArtifact:
        with self._changed:
            self._busy = False
            self._changed.notify_all()
            while not self._waiting:
                self._changed.wait()
            self._busy = True
            return self._waiting.pop(next(iter(self._waiting)))

    def _publish(self, client: Any, artifact: PrefectArtifact) -> None:
        from prefect.client.schemas.actions import ArtifactCreate, ArtifactUpdate

        identity = artifact.flow_run_id, artifact.key
        created = self._created.get(identity)
        if created is not None:
            client.update_artifact(created, ArtifactUpdate(data=artifact.data, description=artifact.description))
            return
        value: dict[str, Any] = {
            "key": artifact.key,
            "type": artifact.kind,
            "data": artifact.data,
            "description": artifact.description,
            "flow_run_id": artifact.flow_run_id,
            "task_run_id": artifact.task_run_id,
        }
        self._created[identity] = client.create_artifact(ArtifactCreate.model_validate(value)).id


def _cell(value: Any) -> Any:
    """A cell of a table: numbers as they are, everything else as text, redacted before JSON escapes its characters."""
    return value if value is None or isinstance(value, (int, float)) else inert(redacted(str(value)))


ARTIFACTS = ArtifactPublisher()
"""The publisher of this process."""
