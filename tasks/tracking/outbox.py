"""An outbox: entries for a server that may be unavailable, sent in order by a background thread, so that no caller
waits.

While the server is unavailable, the first unsent entry is retried at growing intervals, so that the record stays
complete and in order. An error that a retry cannot fix ends the sending.
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
"""Seconds between two attempts while the server is unavailable: doubled from the first to the longest."""
GATHER_SECONDS = 5.0
"""Between two times that curves are sent: each is one transaction, however many points it has."""
LOOKAHEAD = 400
"""Entries that are examined to find those of one batch."""
LONGEST_REASON = 200
LONGEST_CALL = 300.0
"""Seconds after which `drain` no longer waits for one call, such as a model's upload."""


class Outbox:
    """A queue of entries that a thread passes to `send`, which raises what MLflow raises.

    `is_unavailable` returns whether a retry after this exception may succeed. `advice` is appended to the one warning
    of an outage.
    """

    def __init__(
        self,
        send: Callable[[list[Entry]], None],
        is_unavailable: Callable[[Exception], bool],
        advice: Callable[[str], str],
    ) -> None:
        self._send, self._is_unavailable, self._advice = send, is_unavailable, advice
        self._entries: deque[Entry] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._hurried = False
        self.failure: str | None = None
        """Why MLflow does not record at present; None while it answers."""
        self._given_up = False
        self._answered = time.monotonic()
        self._due = 0
        """How many of the entries are sent without waiting for more."""
        self._gathered = -GATHER_SECONDS
        """When curves were last sent."""
        self._failed_attempts = 0
        self._thread = threading.Thread(target=self._work, name="cursus-tracking", daemon=True)
        self._thread.start()

    def put(self, entries: Iterable[Entry]) -> None:
        """Queue entries behind those that were put before. Returns at once."""
        with self._changed:
            if not self._given_up:
                self._entries.extend(entries)
                self._changed.notify_all()

    def drain(self, patience: float, at_most: float = float("inf")) -> bool:
        """Wait until everything is sent, and return whether it was.

        Waits as long as the server answers, at most `patience` seconds while it does not, and never more than `at_most`
        seconds.
        """
        began, attempts = time.monotonic(), self._failed_attempts
        with self._changed:
            self._hurried = True
            self._changed.notify_all()
            while self._entries and not self._given_up:
                silent, waited = time.monotonic() - self._answered, time.monotonic() - began
                # a server that has long been unavailable gets one more attempt, and no further wait
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
        """Stop sending; what is left stays unsent."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _work(self) -> None:
        while (batch := self._next()) is not None:
            try:
                self._send(batch)
            except Exception as error:
                if not self._failed(error):
                    return
            else:
                self._sent(len(batch))

    def _next(self) -> list[Entry] | None:
        with self._changed:
            while not self._closed and (pause := self._gathering()) != 0:
                self._changed.wait(pause)
            return None if self._closed else next(batches(islice(self._entries, LOOKAHEAD)))

    def _gathering(self) -> float | None:
        """Seconds until the next batch is due if no entry is added; 0 when one is due, None when the queue is empty."""
        if not self._entries:
            return None
        if not self._due:
            left = self._gathered + GATHER_SECONDS - time.monotonic()
            only_curves = len(self._entries) < LOOKAHEAD and all(map(curve, self._entries))
            if only_curves and not self._hurried and left > 0:
                return left
            self._due, self._gathered = len(self._entries), time.monotonic()
        return 0

    def _sent(self, count: int) -> None:
        with self._changed:
            for _ in range(count):
                self._entries.popleft()
            self._due = max(0, self._due - count)
            self._answered = time.monotonic()
            self._failed_attempts = 0
            back, self.failure = self.failure is not None, None
            self._changed.notify_all()
        if back:
            log.warning("MLflow answers again; the entries that it missed are being sent.")

    def _failed(self, error: Exception) -> bool:
        """Note a failure and pause; return whether to go on sending."""
        reason = redacted(str(error).splitlines()[0])[:LONGEST_REASON] if str(error) else "no reason given"
        failure = f"{type(error).__name__}: {reason}"
        unavailable = self._is_unavailable(error)
        with self._changed:
            first, self.failure = self.failure is None, failure
            self._failed_attempts += 1
            self._given_up = not unavailable
            self._changed.notify_all()
        log.debug("recording stopped here", exc_info=True)
        if not unavailable:
            log.warning(
                "MLflow has stopped recording (%s). The run continues; the next run records what is missing.",
                failure,
            )
            return False
        if first:
            log.warning(
                "MLflow does not answer (%s). The run continues; what it misses is sent when it answers again.%s",
                failure,
                self._advice(failure),
            )
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (self._failed_attempts - 1))
        deadline = time.monotonic() + pause
        with self._changed:
            while not self._closed and (left := deadline - time.monotonic()) > 0:
                # a caller of `drain` is waiting: retry at the shortest interval
                if self._hurried and left < pause - FIRST_PAUSE:
                    break
                self._changed.wait(min(left, FIRST_PAUSE))
        return True
