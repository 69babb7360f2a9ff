"""What a server that may be away is to be told, told in order by a thread of its own: nobody waits for the server.

While it is away, the first thing that it has not been told is tried again, at growing intervals, so that its story stays
whole and in order. An answer that no patience will change ends the telling.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice

from pipelines.safety.redaction import redacted
from tasks.tracking.journal import Entry, batches, curve

log = logging.getLogger("cursus.tracking")

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 15.0
"""Seconds between two attempts at a server that is away: doubled from the first to the longest."""
GATHER_SECONDS = 5.0
"""Between two times that curves are told: each time is a transaction, however many points it brings."""
AHEAD = 400
"""Entries looked at to find those that belong together."""
LONGEST_REASON = 200
LONGEST_CALL = 300.0
"""Seconds that one call may take, a model's upload among them, before nobody waits for it any more."""


class Outbox:
    """Entries on their way to MLflow through `tell`, which raises what MLflow raises.

    `is_away` says of an exception whether trying again may help. `advice` is added to the one warning of an outage.
    """

    def __init__(
        self, tell: Callable[[list[Entry]], None], is_away: Callable[[Exception], bool], advice: Callable[[str], str]
    ) -> None:
        self._tell, self._is_away, self._advice = tell, is_away, advice
        self._entries: deque[Entry] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._hurried = False
        self.failure: str | None = None
        """Why MLflow is not told now; None while it answers."""
        self._given_up = False
        self._answered = time.monotonic()
        self._due = 0
        """How many of the entries are told without waiting for more."""
        self._gathered = -GATHER_SECONDS
        """When curves were last told."""
        self._failed_attempts = 0
        self._thread = threading.Thread(target=self._work, name="cursus-tracking", daemon=True)
        self._thread.start()

    def put(self, entries: Iterable[Entry]) -> None:
        """Have these told, after what was put before. Returns at once."""
        with self._changed:
            if not self._given_up:
                self._entries.extend(entries)
                self._changed.notify_all()

    def drain(self, patience: float, at_most: float = float("inf")) -> bool:
        """Wait until all is told: as long as the server answers, and no more than `patience` seconds while it does not.

        Never longer than `at_most` seconds. Whether all was told.
        """
        began, attempts = time.monotonic(), self._failed_attempts
        with self._changed:
            self._hurried = True
            self._changed.notify_all()
            while self._entries and not self._given_up:
                silent, waited = time.monotonic() - self._answered, time.monotonic() - began
                # one that has been away for long is asked once more, and not waited for again
                if self.failure is not None and silent > patience:
                    if self._failed_attempts > attempts or waited > patience:
                        break
                elif min(silent, waited) > LONGEST_CALL:
                    break
                if waited > at_most:
                    break
                self._changed.wait(0.2)
            self._hurried = False
            return not self._entries and not self._given_up

    def close(self) -> None:
        """Tell no more: what is left stays untold."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _work(self) -> None:
        while (batch := self._next()) is not None:
            try:
                self._tell(batch)
            except Exception as error:
                if not self._failed(error):
                    return
            else:
                self._told(len(batch))

    def _next(self) -> list[Entry] | None:
        with self._changed:
            while not self._closed and (pause := self._gathering()) != 0:
                self._changed.wait(pause)
            return None if self._closed else next(batches(islice(self._entries, AHEAD)))

    def _gathering(self) -> float | None:
        """Seconds until something is told, if nothing else comes; None where there is nothing."""
        if not self._entries:
            return None
        if not self._due:
            left = self._gathered + GATHER_SECONDS - time.monotonic()
            alone = all(curve(entry) for entry in islice(self._entries, AHEAD)) and len(self._entries) < AHEAD
            if alone and not self._hurried and left > 0:
                return left
            self._due, self._gathered = len(self._entries), time.monotonic()
        return 0

    def _told(self, count: int) -> None:
        with self._changed:
            for _ in range(count):
                self._entries.popleft()
            self._due = max(0, self._due - count)
            self._answered = time.monotonic()
            self._failed_attempts = 0
            back, self.failure = self.failure is not None, None
            self._changed.notify_all()
        if back:
            log.warning("MLflow answers again; what it missed is being told.")

    def _failed(self, error: Exception) -> bool:
        """Note a failure and pause; whether to go on."""
        reason = redacted(str(error).splitlines()[0])[:LONGEST_REASON] if str(error) else "no reason given"
        said = f"{type(error).__name__}: {reason}"
        away = self._is_away(error)
        with self._changed:
            first, self.failure = self.failure is None, said
            self._failed_attempts += 1
            self._given_up = not away
            self._changed.notify_all()
        log.debug("where recording stopped", exc_info=True)
        if not away:
            log.warning(
                "MLflow has stopped recording (%s). The run goes on; what is missing is recorded when the next one starts.",
                said,
            )
            return False
        if first:
            log.warning(
                "MLflow does not answer (%s). The run goes on; what MLflow misses is kept and told when it is back.%s",
                said,
                self._advice(said),
            )
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (self._failed_attempts - 1))
        deadline = time.monotonic() + pause
        with self._changed:
            while not self._closed and (left := deadline - time.monotonic()) > 0:
                # somebody waits for the end: ask at the shortest interval
                if self._hurried and left < pause - FIRST_PAUSE:
                    break
                self._changed.wait(min(left, FIRST_PAUSE))
        return True
