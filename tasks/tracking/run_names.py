"""Names of MLflow's runs: those of two executions never look the same.

bert hour 20260301-101500-3f2a      an execution of the recipe `bert` with its variants
classify@1 · bert 3f2a              a step of it
classify@1 · bert 9e81d004          a step that was recorded from its artifact alone
"""

from __future__ import annotations

from tasks.records.execution_parameters import NONE

EXECUTION = "execution"
"""The tag `cursus.kind` of the run of an execution; that of a step is the kind of its stage."""
DIGITS = 8
"""Digits of a fingerprint in a name."""


def execution_run_name(recipe: str, variants: str | None, execution: str) -> str:
    """Name of the run of an execution; `variants` as in its parameters."""
    words = [] if variants in (None, NONE) else str(variants).split(", ")
    return " ".join([recipe, *words, execution])


def step_run_name(step: str, recipe: str, execution: str | None, fingerprint: str) -> str:
    """Name of the run of a step, in an `execution` or recorded from its artifact."""
    owner = execution.rpartition("-")[2] if execution else fingerprint[:DIGITS]
    return f"{step} · {recipe} {owner}"
