"""Progress on the terminal: one line a step, updated while it trains."""

from __future__ import annotations

import sys
import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeRemainingColumn

from pipelines.lineage.results import EXAMPLES, SAMPLE, Result
from pipelines.messages.translation import message
from pipelines.reports.elements.wording import metric_name

WIDTH = 16
EVERY_SECONDS = 30
"""Interval between two lines about a step that runs, where there are no bars."""


class TerminalProgress:
    """Progress of one execution. On a terminal bars move; elsewhere (a log, CI) each finished step is one line, and one
    of a step that runs appears every EVERY_SECONDS."""

    def __init__(self, quiet: bool = False) -> None:
        self.console = Console(stderr=True, highlight=False, quiet=quiet)
        self._bars = Progress(
            SpinnerColumn(),
            TextColumn("{task.description:<16}"),
            BarColumn(bar_width=28),
            TextColumn("{task.fields[status]}"),
            TimeRemainingColumn(compact=True),
            console=self.console,
            transient=True,
            disable=not sys.stderr.isatty() or quiet,
        )
        self._tasks: dict[str, TaskID] = {}
        self._rates: dict[str, tuple[float, float, float]] = {}
        self._printed: dict[str, float] = {}
        """Step → when its last line was printed."""

    def __enter__(self) -> TerminalProgress:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def print_line(self, line: str) -> None:
        """Print a line that stays above the bars."""
        self.console.print(line, soft_wrap=True)

    def begin(self, label: str) -> None:
        """Show a step whose process is starting."""
        if label not in self._tasks:
            self._tasks[label] = self._bars.add_task(label, total=None, status=message("starting"))
            self._printed[label] = time.monotonic()

    def status(self, label: str, line: str) -> None:
        """Show what a step does where it has no metrics."""
        self.begin(label)
        self._bars.update(self._tasks[label], status=line)
        self._print_now_and_then(label, line)

    def update(self, label: str, line: dict[str, Any], total: int | None, metric: str) -> float | None:
        """Show a step's latest metrics, among them the task's `metric`; return the share done, None without `total`."""
        self.begin(label)
        tokens, now = float(line["tokens"]), time.monotonic()
        began, first, _ = self._rates.get(label, (now, tokens, 0.0))
        if tokens < first:  # the first lines were those of an earlier attempt
            began, first = now, tokens
        rate = (tokens - first) / (now - began) if now > began else 0.0
        self._rates[label] = (began, first, rate)
        shown = [message("{millions:.2f}M tokens", millions=tokens / 1e6)]
        if rate:
            shown.append(message("{thousands:.1f}k tokens/s", thousands=rate / 1e3))
        for name, words in _figures(metric):
            if name in line:
                shown.append(f"{words} {line[name]:.3f}")
        self._bars.update(self._tasks[label], total=total, completed=tokens if total else 0, status="  ".join(shown))
        self._print_now_and_then(label, "  ".join(shown))
        return min(1.0, tokens / total) if total else None

    def _print_now_and_then(self, label: str, line: str) -> None:
        if self._bars.disable and time.monotonic() - self._printed[label] >= EVERY_SECONDS:
            self._printed[label] = time.monotonic()
            self.print_line(f"{label:<{WIDTH}} {line}")

    def done(self, label: str, result: Result, seconds: float, metric: str) -> str:
        """Print and return the line of a finished step, with the task's `metric` if it was measured."""
        if label in self._tasks:
            self._bars.remove_task(self._tasks.pop(label))
        words = [f"{label:<{WIDTH}} {_duration(seconds):>7}"]
        if result.tokens:
            words.append(message("{millions:6.2f}M tokens", millions=result.tokens / 1e6))
            words.append(message("{thousands:5.1f}k/s", thousands=result.tokens / seconds / 1e3))
        for name, shown in reversed(_figures(metric)):
            if name in result.metrics:
                words.append(f"{shown} {result.metrics[name]:.3f}")
                break
        if SAMPLE in result.metrics:
            sample, examples = (int(result.metrics[name]) for name in (SAMPLE, EXAMPLES))
            line = "(on {examples:,} examples; in each epoch on {sample:,} of them)"
            words.append(message(line, examples=examples, sample=sample))
        words += [
            message("({trouble}; resumed from an earlier one)", trouble=trouble) for trouble in result.passed_over
        ]
        line = "  ".join(words)
        self.print_line(line)
        return line


def _figures(metric: str) -> list[tuple[str, str]]:
    """Key and label of the metrics that are shown of a step."""
    return [
        ("train/loss", message("loss")),
        (f"validation/{metric}", message("validation {metric}", metric=metric_name(metric))),
    ]


def _duration(seconds: float) -> str:
    return f"{seconds:.0f}s" if seconds < 90 else f"{int(seconds // 60)}m{int(seconds % 60):02d}s"
