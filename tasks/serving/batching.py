"""Requests that arrive together are computed together: one batch at a time, in a thread of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pipelines.errors import CursusError
from pipelines.serving.answering.answering_model import Prediction
from pipelines.task_families import Row


class QueueFullError(CursusError):
    """More examples wait than the server accepts."""


@dataclass(frozen=True)
class BatchLimits:
    """When a batch is computed, and how many examples may wait for theirs."""

    largest: int = 32
    """Examples of one batch; a request with more is a batch of its own."""
    wait_ms: float = 2.0
    """Milliseconds that the first request of a batch waits for others."""
    most_waiting: int = 4096
    """Examples that may wait; further requests are refused."""


@dataclass(frozen=True)
class _Pending:
    rows: Sequence[Row]
    result: asyncio.Future[list[Prediction]]


class Batcher:
    """Collects the rows of concurrent requests into batches for `predict`, which runs in one thread.

    `on_batch` receives the number of rows of every batch. Use it as a context in a running event loop.
    """

    def __init__(
        self,
        predict: Callable[[Sequence[Row]], list[Prediction]],
        limits: BatchLimits,
        on_batch: Callable[[int], None] = lambda rows: None,
    ) -> None:
        self._predict, self._limits, self._on_batch = predict, limits, on_batch
        self._queue: asyncio.Queue[_Pending] = asyncio.Queue()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="predict")
        self._waiting = 0

    async def __aenter__(self) -> Batcher:
        self._task = asyncio.create_task(self._work())
        return self

    async def __aexit__(self, *error: object) -> None:
        self._task.cancel()
        self._thread.shutdown(wait=True, cancel_futures=True)

    async def predict(self, rows: Sequence[Row]) -> list[Prediction]:
        """The predictions for `rows`. Raises what the model raises for them, and QueueFullError."""
        if self._waiting + len(rows) > self._limits.most_waiting:
            raise QueueFullError(f"{self._waiting:,} examples are waiting already; send this request again later")
        pending = _Pending(rows, asyncio.get_running_loop().create_future())
        self._waiting += len(rows)
        try:
            self._queue.put_nowait(pending)
            return await pending.result
        finally:
            self._waiting -= len(rows)

    async def _work(self) -> None:
        carried: _Pending | None = None
        while True:
            batch = [carried or await self._queue.get()]
            carried = await self._fill(batch)
            await self._compute(batch)

    async def _fill(self, batch: list[_Pending]) -> _Pending | None:
        """Add requests to `batch` until it is full or its time is over; returns one that did not fit any more."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._limits.wait_ms / 1000
        size = len(batch[0].rows)
        while size < self._limits.largest:
            try:
                pending = await asyncio.wait_for(self._queue.get(), deadline - loop.time())
            except TimeoutError:
                return None
            if size + len(pending.rows) > self._limits.largest:
                return pending
            batch.append(pending)
            size += len(pending.rows)
        return None

    async def _compute(self, batch: Sequence[_Pending]) -> None:
        live = [pending for pending in batch if not pending.result.done()]  # whose client has not gone away
        rows = [row for pending in live for row in pending.rows]
        if not rows:
            return
        self._on_batch(len(rows))
        try:
            predictions = await asyncio.get_running_loop().run_in_executor(self._thread, self._predict, rows)
        except Exception as error:
            if len(live) > 1:  # one request's mistake is no other's
                for pending in live:
                    await self._compute([pending])
            elif not live[0].result.done():
                live[0].result.set_exception(error)
            return
        start = 0
        for pending in live:
            if not pending.result.done():
                pending.result.set_result(predictions[start : start + len(pending.rows)])
            start += len(pending.rows)
