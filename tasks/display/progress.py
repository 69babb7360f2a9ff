"""What a person watching the terminal sees: one line a step, alive while it trains."""

from __future__ import annotations

import sys
import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from pipelines.lineage.results import Result
from pipelines.reports.elements.wording import metric_name

WIDTH = 16


class Progress:
    """Progress of one execution. On a terminal bars move; elsewhere (a log, CI) each finished step is one line."""

    def __init__(self, quiet: bool = False) -> None:
        self.console = Console(stderr=True, highlight=False, quiet=quiet)
        self._bars = Bars(
            SpinnerColumn(),
            TextColumn("{task.description:<16}"),
            BarColumn(bar_width=28),
            TextColumn("{task.fields[said]}"),
            TimeRemainingColumn(compact=True),
            console=self.console,
            transient=True,
            disable=not sys.stderr.isatty() or quiet,
        )
        self._tasks: dict[str, TaskID] = {}
        self._rates: dict[str, tuple[float, float, float]] = {}

    def __enter__(self) -> Progress:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def say(self, line: str) -> None:
        """A line that stays."""
        self.console.print(line)

    def begin(self, label: str) -> None:
        """A step has been handed to its process, which is starting."""
        if label not in self._tasks:
            self._tasks[label] = self._bars.add_task(label, total=None, said="starting")

    def update(self, label: str, line: dict[str, Any], total: int | None, metric: str) -> float | None:
        """New numbers of a step, among them the task's `metric`; the share that is done, where that is known."""
        self.begin(label)
        tokens, now = float(line["tokens"]), time.monotonic()
        began, first, _ = self._rates.get(label, (now, tokens, 0.0))
        if tokens < first:  # an earlier attempt's lines were told before this one started over
            began, first = now, tokens
        rate = (tokens - first) / (now - began) if now > began else 0.0
        self._rates[label] = (began, first, rate)
        shown = [f"{tokens / 1e6:.2f}M tokens"]
        if rate:
            shown.append(f"{rate / 1e3:.1f}k tokens/s")
        for name, words in _figures(metric):
            if name in line:
                shown.append(f"{words} {line[name]:.3f}")
        self._bars.update(self._tasks[label], total=total, completed=tokens if total else 0, said="  ".join(shown))
        return min(1.0, tokens / total) if total else None

    def done(self, label: str, result: Result, seconds: float, metric: str) -> str:
        """A step is published; the line that says so, with the task's `metric` where it was measured."""
        if label in self._tasks:
            self._bars.remove_task(self._tasks.pop(label))
        words = [f"{label:<{WIDTH}} {_duration(seconds):>7}"]
        if result.tokens:
            words.append(f"{result.tokens / 1e6:6.2f}M tokens")
            words.append(f"{result.tokens / seconds / 1e3:5.1f}k/s")
        for name, shown in reversed(_figures(metric)):
            if name in result.metrics:
                words.append(f"{shown} {result.metrics[name]:.3f}")
                break
        words += [f"({trouble}; went on from an earlier one)" for trouble in result.passed_over]
        line = "  ".join(words)
        self.say(line)
        return line


def _figures(metric: str) -> list[tuple[str, str]]:
    """Key and words of what is said of a step."""
    return [("train/loss", "loss"), (f"validation/{metric}", f"validation {metric_name(metric)}")]


def _duration(seconds: float) -> str:
    return f"{seconds:.0f}s" if seconds < 90 else f"{int(seconds // 60)}m{int(seconds % 60):02d}s"
