"""Limits as a person writes them, and what is refused."""

from __future__ import annotations

import pytest

from pipelines.errors import CursusError
from pipelines.judging.limits import Limits


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("10 MB, 5 ms, -2 points", Limits(10e6, 5.0, 0.02)),
        ("10MB,5ms,−2points", Limits(10e6, 5.0, 0.02)),
        ("2 points", Limits(loss=0.02)),
        ("+1.5 points", Limits(loss=-0.015)),
        ("0 points", Limits(loss=0.0)),
        ("512 KiB", Limits(bytes=2.0**19)),
        ("0.25 s", Limits(milliseconds=250.0)),
        (".5 GB", Limits(bytes=5e8)),
    ],
)
def test_limits_are_read(text: str, limits: Limits) -> None:
    read = Limits.parse(text)
    for name in ("bytes", "milliseconds", "loss"):
        assert getattr(read, name) == pytest.approx(getattr(limits, name))
    assert Limits.parse(str(read)) == Limits.parse(str(Limits.parse(str(read)))), "what is printed is read again"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("10", "10 has no unit"),
        ("10 MB, 5", "5 has no unit"),
        ("10 parrots", "'parrots' is no unit"),
        ("0 MB", "no model has 0 MB"),
        ("-3 ms", "no model has -3 ms"),
        ("10 MB, 20 MB", "the size is limited twice"),
        ("", "'' is no limit"),
        ("MB", "'MB' is no limit"),
        ("nan MB", "'nan MB' is no limit"),
        ("1e4 MB", "'1e4 MB' is no limit"),
        ("ten MB", "'ten MB' is no limit"),
    ],
)
def test_anything_else_is_one_sentence(text: str, reason: str) -> None:
    with pytest.raises(CursusError) as caught:
        Limits.parse(text)
    assert reason in str(caught.value) and "\n" not in str(caught.value) and f'"{text}"' in str(caught.value)
