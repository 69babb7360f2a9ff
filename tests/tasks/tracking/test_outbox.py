"""What waits for MLflow: points of curves together, everything else at once, in its order."""

from __future__ import annotations

import threading

import pytest

from tasks.tracking import outbox
from tasks.tracking.journal import Entry, MetricsMeasured, StepFailed
from tasks.tracking.outbox import Outbox

STEP = "0" * 64


def point(number: int) -> MetricsMeasured:
    return MetricsMeasured(fingerprint=STEP, lines=[{"step": number}])


def test_points_wait_for_each_other_and_for_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "GATHER_SECONDS", 3600.0)
    told: list[list[Entry]] = []
    heard = threading.Event()

    def tell(entries: list[Entry]) -> None:
        told.append(entries)
        heard.set()

    box = Outbox(tell, lambda error: False, lambda failure: "")
    points = [point(number) for number in range(40)]
    box.put(points[:1])
    assert heard.wait(60), "the first is told at once"
    for one in points[1:20]:
        box.put([one])
    assert told == [points[:1]]
    failed = StepFailed(fingerprint=STEP, message="")
    heard.clear()
    box.put([failed])
    assert heard.wait(60)
    assert box.drain(60)
    assert told == [points[:1], points[1:20], [failed]], "what is no point takes those before it along"
    box.put(points[20:])
    assert box.drain(60), "whoever waits for the end does not wait for more points"
    assert told[3:] == [points[20:]]
    box.close()
