"""What routes to a smaller model reach: the forms that keep enough of the teacher's score, and what they save.

Forms are chosen by the score of their stage on validation examples, and by bytes and milliseconds; their scores on the
test table, which the figures show, take no part in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.harness.record import Figure, Plot, Point, Series
from pipelines.judging.front import ServedForm, front, not_dominated

KEPT = 0.97
"""Share of the teacher's score that a smaller model has to keep."""
SMALLER, FASTER = 10.0, 9.4
"""Times fewer bytes, and times less time for one example: TinyBERT's against BERT-base are 7.5 and 9.4 (Jiao et al.
2019, table 1)."""


@dataclass(frozen=True)
class Front:
    """The forms that were measured of a task's teacher and of the routes over it."""

    forms: tuple[ServedForm, ...]
    """The teacher in eager torch, float32, first."""
    validation: Mapping[str, float]
    """Stage → score on the validation examples."""
    metric: str

    @property
    def teacher(self) -> ServedForm:
        return self.forms[0]

    def smaller(self, form: ServedForm) -> float:
        """Bytes of the teacher over those of `form`."""
        return self.teacher.bytes / form.bytes

    def faster(self, form: ServedForm) -> float:
        """Milliseconds of the teacher for one example over those of `form`: medians of calls that took turns."""
        return self.teacher.milliseconds / form.milliseconds

    @property
    def keeping(self) -> list[ServedForm]:
        """The forms that keep `KEPT` of the teacher's score on the validation examples; the teacher in other runtimes
        is one of them."""
        enough = KEPT * self.validation[self.teacher.stage]
        return [one for one in self.forms[1:] if self.validation[one.stage] >= enough]

    @property
    def smallest(self) -> ServedForm | None:
        """The smallest form among `keeping`."""
        return min(self.keeping, key=lambda one: (one.bytes, one.milliseconds), default=None)

    @property
    def fastest(self) -> ServedForm | None:
        """The fastest form among `keeping`."""
        return min(self.keeping, key=lambda one: (one.milliseconds, one.bytes), default=None)

    @property
    def at_the_goal(self) -> ServedForm | None:
        """The fastest form of the stage with the best validation score, among those `SMALLER` and `FASTER`."""
        small = [one for one in self.forms[1:] if self.smaller(one) >= SMALLER and self.faster(one) >= FASTER]
        return min(small, key=lambda one: (-self.validation[one.stage], one.milliseconds), default=None)

    def kept(self, name: str, form: ServedForm) -> Figure:
        """Share of the teacher's score that `form` keeps on the test examples; its interval is that of the paired
        difference."""
        score = self.teacher.score
        shares = (1 + change / score for change in (form.difference, form.difference_low, form.difference_high))
        value, low, high = shares
        return Figure(name=name, value=value, low=low, high=high, unit="")

    def lines(self, task: str) -> list[str]:
        """Every form, the smallest first, as a note; the ones that no other beats are marked."""
        best = not_dominated(self.forms)
        return [
            f"{task}: {one.title}{' (front)' if one in best else ''}: {one.bytes / 1e6:.2f} MB, "
            f"{one.milliseconds:.2f} ms, {one.milliseconds_of_a_batch:.1f} ms of 32, {self.metric} {one.score:.3f} "
            f"({one.low:.3f} to {one.high:.3f}), {one.difference:+.3f} ({one.difference_low:+.3f} to "
            f"{one.difference_high:+.3f}), on validation {self.validation[one.stage]:.3f}"
            for one in sorted(self.forms, key=lambda one: one.bytes)
        ]


def plots(fronts: Mapping[str, Front]) -> tuple[Plot, ...]:
    """Score against bytes and against time: of each task the forms that beat all cheaper ones."""
    costs: Sequence[tuple[str, str, Callable[[ServedForm], float]]] = (
        ("size", "MB on disk", lambda one: one.bytes / 1e6),
        ("time", "ms for one example", lambda one: one.milliseconds),
    )
    return tuple(
        Plot(
            name=name,
            title=f"Score by {name}",
            x=label,
            y="share of the teacher's score",
            series=tuple(
                Series(name=task, points=tuple(_point(measured, one, cost(one)) for one in front(measured.forms, cost)))
                for task, measured in fronts.items()
            ),
        )
        for name, label, cost in costs
    )


def _point(measured: Front, form: ServedForm, x: float) -> Point:
    share = measured.kept("", form)
    return Point(x=x, y=share.value, low=share.low, high=share.high)
