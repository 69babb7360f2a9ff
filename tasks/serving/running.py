"""The server of a model that runs in this project: its record in `.cursus/serving.json`, and predictions from it.

`cursus predict` takes the answers of a running server of the same model: it has been opened already.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ValidationError

from pipelines.errors import CursusError
from tasks.environment import append_privately, state_folder
from tasks.servers.accounts import Account, account
from tasks.servers.processes import Process
from tasks.serving.protection import LARGEST_REQUEST

if TYPE_CHECKING:
    from pipelines.task_families import Row, TaskFamily

RECORD = "serving.json"
JOURNAL = ".promotions.jsonl"
"""The journal of promotions, in the store."""
FILE = "params.yaml"
PATIENCE = 60.0
"""Seconds that the answer to a request may take."""
EXAMPLES = 32
"""Examples of a request, at most: a batch of the server, so that no request takes as long as a whole file."""
SHOWN = 200
"""Bytes shown of an answer that is no JSON."""
LARGEST = LARGEST_REQUEST // 4
"""Bytes of the examples of a request, at most, but for a single one that is larger."""


class ServingRecord(BaseModel):
    """A server: its address and process, the model's folder, and the task that was chosen of several."""

    url: str
    process: Process
    title: str
    folder: str
    task: str | None
    reference: str | None
    """How the model was named, with the dataset: what is named the same is the same model while `state` is."""
    dataset: str | None
    state: str


def state_of(root: Path) -> str:
    """What changes when a run or a promotion ends, or the settings are edited: the default model may then be another
    one."""
    paths = (root / "reports", root / "data" / "store" / JOURNAL, root / FILE)
    return " ".join(str(path.stat().st_mtime_ns) if path.exists() else "-" for path in paths)


def write_record(root: Path, record: ServingRecord) -> None:
    """Record the server that this process runs."""
    file = state_folder(root) / RECORD
    temporary = file.with_suffix(".part")
    with append_privately(temporary, anew=True) as output:
        output.write(record.model_dump_json().encode())
    os.replace(temporary, file)


def remove_record(root: Path) -> None:
    """Remove the record, if it is that of this process."""
    record = _read(root)
    if record is not None and record.process.pid == os.getpid():
        (state_folder(root) / RECORD).unlink(missing_ok=True)


@dataclass(frozen=True)
class RunningServer:
    """A server that runs, as this project's account may use it."""

    title: str
    url: str
    account: Account

    def predict(self, rows: Sequence[Row]) -> list[dict[str, Any]]:
        """The predictions for `rows`, as JSON. Raises CursusError with what the server answers otherwise."""
        inputs = [row["text"] if [*row] == ["text"] else row for row in rows]
        answers = [self._request("POST", "/predict", {"inputs": part}) for part in _requests(inputs)]
        return [prediction for answer in answers for prediction in answer["predictions"]]

    def family(self) -> TaskFamily:
        """The task family of the served model."""
        from pipelines.task_families import TaskFamily

        return TaskFamily.model_validate(self._request("GET", "/model")["task"])

    def _request(self, method: str, path: str, payload: Any = None) -> dict[str, Any]:
        address = urlsplit(self.url)
        connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=PATIENCE)
        login = base64.b64encode(self.account.line.encode()).decode()
        headers = {"Authorization": f"Basic {login}", "Content-Type": "application/json"}
        try:
            connection.request(method, path, json.dumps(payload) if payload is not None else None, headers)
            response = connection.getresponse()
            payload = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise CursusError(f"the server at {self.url} did not answer ({error}); start it again") from None
        finally:
            connection.close()
        try:
            answer: dict[str, Any] = json.loads(payload)
        except ValueError:
            reason = payload[:SHOWN].decode("utf-8", "replace")
            raise CursusError(f"the server at {self.url} answered {response.status}: {reason}") from None
        if response.status != 200:
            raise CursusError(str(answer.get("detail", response.reason)))
        return answer


def _requests(inputs: Sequence[Any]) -> Iterator[list[Any]]:
    """`inputs` in the parts that are sent together."""
    part: list[Any] = []
    size = 0
    for one in inputs:
        length = len(json.dumps(one))
        if part and (len(part) == EXAMPLES or size + length > LARGEST):
            yield part
            part, size = [], 0
        part.append(one)
        size += length
    if part:
        yield part


def running_server(root: Path, folder: Path, task: str | None) -> RunningServer | None:
    """The server in this project that answers `task` with the model in `folder`; None when there is none."""
    record = _read(root)
    same = record is not None and (record.folder, record.task) == (str(folder.resolve()), task)
    return _running(root, record) if record is not None and same else None


def default_server(root: Path, dataset: str | None, task: str | None) -> RunningServer | None:
    """The server in this project that answers `task` with the default model of `dataset`, unless the default may have
    become another since it was started. Resolves nothing, which would take longer than the answer."""
    record = _read(root)
    if record is None or (record.reference, record.dataset, record.task) != (None, dataset, task):
        return None
    return _running(root, record) if record.state == state_of(root) else None


def _running(root: Path, record: ServingRecord) -> RunningServer | None:
    known = account(root) if record.process.alive() else None
    return RunningServer(record.title, record.url, known) if known is not None else None


def _read(root: Path) -> ServingRecord | None:
    try:
        return ServingRecord.model_validate_json((state_folder(root) / RECORD).read_bytes())
    except (FileNotFoundError, ValidationError):
        return None
