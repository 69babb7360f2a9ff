"""What paced loops measured, case by case."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from benchmarks.harness.paced import Paces
from benchmarks.harness.record import Figure, Measured
from benchmarks.harness.turns import Turns, rate, ratio


def measured(cases: Iterable[tuple[str, Paces]], ratios: Callable[[str, Paces], Sequence[Figure]]) -> Measured:
    """The `ratios` of each case, by its name, and the tokens per second of each of its variants."""
    figures: list[Figure] = []
    turns: Turns = {}
    notes: list[str] = []
    for name, paces in cases:
        turns |= {f"{name}: {variant}": taken for variant, taken in paces.turns.items()}
        notes += paces.notes(f"{name}: ")
        figures += ratios(name, paces)
        figures += [rate(f"{name}: {variant}", taken, "tokens/s") for variant, taken in paces.turns.items()]
    return Measured(figures=tuple(figures), turns=turns, notes=tuple(notes))


def against(variant: str, other: str, figure: Callable[[str], str]) -> Callable[[str, Paces], list[Figure]]:
    """The ratio of two variants, as the `figure` of a case's name; none where a loop failed."""

    def ratios(name: str, paces: Paces) -> list[Figure]:
        return [] if paces.failed else [ratio(figure(name), paces.turns[variant], paces.turns[other], other)]

    return ratios
