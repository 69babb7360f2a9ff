"""A row of cases at one checkout: strike, strike again, run until done, judge."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from datetime import UTC, datetime
from functools import cache
from random import Random

from benchmarks.faults import records
from benchmarks.faults.attempt import Ending
from benchmarks.faults.fault import Fault, Strike
from benchmarks.faults.judge import lost, unrecorded, wrong
from benchmarks.faults.records import Record
from benchmarks.faults.regime import RECIPE, Checkout, Regime
from benchmarks.harness import company

RUNS = 3
"""How often a regime is run again, each time after what its error asks for, before that is an unclear error."""


def run_series(fault: Fault, numbers: list[int], regime: Regime) -> list[Record]:
    """Run the cases `numbers` of a kind at one checkout, keep their records, and return them.

    A regime that was done before a strike ends the row; its other cases are left for another checkout.
    """
    checkout = regime.checkout(f"{fault.name}-{numbers[0]}", fault.standing, fault.devices)
    strikes: list[Strike] = []
    try:
        tries = 0
        while not strikes:  # a strike that came too late at a fresh checkout is drawn anew
            for number in numbers:
                struck = fault.strike(checkout, Random(f"{fault.name} {number} {tries}"))
                if struck is None:
                    break
                strikes.append(struck)
            if not strikes:
                tries += 1
                fault.after(checkout)
                checkout.remove()
                checkout = regime.checkout(f"{fault.name}-{numbers[0]}", fault.standing, fault.devices)
        endings = _until_done(fault, checkout, strikes[-1].ending)
        faults = _end(fault, endings, checkout, regime)
        done = [
            _record(fault, number, strikes[index:], endings, faults, checkout)
            for index, number in enumerate(numbers[: len(strikes)])
        ]
    finally:
        fault.after(checkout)
        checkout.remove()
    records.write(fault.name, sorted([*records.read(fault.name), *done], key=lambda record: record.number))
    return done


def _until_done(fault: Fault, checkout: Checkout, before: Ending) -> list[Ending]:
    """The runs after the last strike, up to the first that succeeds."""
    endings: list[Ending] = []
    while len(endings) < RUNS:
        if not before.success:
            fault.fix(checkout, before)
        before = checkout.run()
        endings.append(before)
        if before.success:
            break
    return endings


def _end(fault: Fault, endings: list[Ending], checkout: Checkout, regime: Regime) -> list[str]:
    """What is wrong at the end."""
    if not endings[-1].success:
        return []  # told as an unclear error
    made = regime.undisturbed(fault.devices).made
    problems = wrong(made, checkout.folder, checkout.store)
    if not fault.tracked:
        checkout.run("run", RECIPE, "--smoke", "--threads", "1", "--until", "general")
    return problems + unrecorded(made, checkout.folder, registered=fault.devices == 1)


def _record(
    fault: Fault, number: int, strikes: list[Strike], endings: list[Ending], faults: list[str], checkout: Checkout
) -> Record:
    """Of the first of `strikes`; the last one answers for how it all ended."""
    strike, *later = strikes

    def text_of(ending: Ending) -> str:
        return ending.words.replace(str(checkout.folder), "…")  # no trace of a machine

    own = [strike.ending] if later else [strike.ending, *endings]
    unclear = [text_of(one) for one in own if not one.clear]
    if not later and not endings[-1].success:
        unclear.append(f"was not done after {len(endings)} runs: {text_of(endings[-1])}")
    return Record(
        kind=fault.name,
        number=number,
        struck=strike.struck,
        ended=text_of(strike.ending),
        runs=0 if later else len(endings),
        recovery_seconds=None if later else round(sum(one.seconds for one in endings), 1),
        lost=lost(strike.finished, [one.finished for one in later], checkout.store),
        wrong=[] if later else [one.replace(str(checkout.folder), "…") for one in faults],
        hangs=[text_of(one) for one in own if one.hung],
        unclear=unclear,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        commit=company.commit(),
        machine=_machine(),
    )


@cache
def _machine() -> str:
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("torch", "prefect", "mlflow"))
    return f"{os.cpu_count()} cores, {platform.platform()}, Python {platform.python_version()}, {versions}"
