"""A series of cases in one checkout: inject faults, run until done, judge."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from datetime import UTC, datetime
from functools import cache
from random import Random

from benchmarks.faults import records
from benchmarks.faults.attempt import Ending
from benchmarks.faults.code import code
from benchmarks.faults.fault import Fault, Strike
from benchmarks.faults.judge import lost, unrecorded, wrong
from benchmarks.faults.records import Record
from benchmarks.faults.regime import FIRST, RECIPE, Checkout, Regime
from benchmarks.harness import company

RUNS = 3
"""Number of further runs, each after following its error's instructions, after which the error counts as unclear."""
LONGEST_WORDS = 240
"""Characters of the description of an end."""
TRIES = 10
"""Number of fresh checkouts in which a fault may come too late; then something else is wrong."""


class NeverStruckError(Exception):
    """A kind of fault that finds nothing to disturb."""


def run_series(fault: Fault, numbers: list[int], regime: Regime) -> list[Record]:
    """Run the cases `numbers` of a kind in one checkout, write their records, and return them.

    A regime that is done before a fault ends the series; its other cases are run in another checkout. Raises
    NeverStruckError when the regime is done before the fault in every one of TRIES fresh checkouts.
    """
    checkout = regime.checkout(f"{fault.name}-{numbers[0]}", fault.recipe, fault.standing, fault.devices)
    strikes: list[Strike] = []
    try:
        tries = 0
        while not strikes:  # a fault that came too late in a fresh checkout is drawn again
            for number in numbers:
                struck = fault.strike(checkout, Random(f"{fault.name} {number} {tries}"))
                if struck is None:
                    break
                strikes.append(struck)
            if not strikes:
                tries += 1
                if tries == TRIES:
                    raise NeverStruckError(f"{fault.name}: the run ended before the fault in {TRIES} checkouts")
                fault.after(checkout)
                checkout.remove()
                checkout = regime.checkout(f"{fault.name}-{numbers[0]}", fault.recipe, fault.standing, fault.devices)
        endings = _until_done(fault, checkout, strikes[-1].ending)
        faults = _end(fault, endings, checkout, regime)
        done = [
            _record(fault, number, strikes[index:], endings, faults, checkout)
            for index, number in enumerate(numbers[: len(strikes)])
        ]
    finally:
        fault.after(checkout)
        checkout.remove()
    before = {record.number: record for record in records.read(fault.name)}
    done = [
        record.model_copy(update={"fixed": before[record.number].history}) if record.number in before else record
        for record in done
    ]
    after = {**before, **{record.number: record for record in done}}
    records.write(fault.name, [after[number] for number in sorted(after)])
    return done


def _until_done(fault: Fault, checkout: Checkout, before: Ending) -> list[Ending]:
    """The runs after the last fault, up to the first that succeeds."""
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
    """Errors in the final state."""
    if not endings[-1].success:
        return []  # recorded as an unclear error
    undisturbed = regime.undisturbed(fault.recipe, fault.devices)
    problems = wrong(undisturbed.made, checkout.folder, checkout.store)
    if not fault.tracked:
        checkout.run("run", RECIPE, "--smoke", "--threads", "1", "--until", FIRST)
    return problems + unrecorded(undisturbed.made, checkout.folder, registered=undisturbed.registered)


def _record(
    fault: Fault, number: int, strikes: list[Strike], endings: list[Ending], faults: list[str], checkout: Checkout
) -> Record:
    """The record of the first of `strikes`; only the record of the last one includes the final state."""
    strike, *later = strikes

    def text_of(ending: Ending) -> str:
        # no machine-specific paths, and none that is cut off
        return ending.words.replace(str(checkout.folder), "…")[:LONGEST_WORDS]

    own = [strike.ending] if later else [strike.ending, *endings]
    unclear = [text_of(one) for one in own if not one.clear]
    if not later and not endings[-1].success:
        unclear.append(f"was not done after {len(endings)} runs: {text_of(endings[-1])}")
    return Record(
        kind=fault.name,
        number=number,
        struck=strike.struck,
        begun=strike.finished.begun,
        finished=len(strike.finished),
        ended=text_of(strike.ending),
        runs=0 if later else len(endings),
        recovery_seconds=None if later else round(sum(one.seconds for one in endings), 1),
        lost=lost(strike.finished, [one.finished for one in later], checkout.store),
        wrong=[] if later else [one.replace(str(checkout.folder), "…") for one in faults],
        hangs=[text_of(one) for one in own if one.hung],
        unclear=unclear,
        fixed=[],
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        commit=company.commit(),
        code=code(),
        machine=_machine(),
    )


@cache
def _machine() -> str:
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("torch", "prefect", "mlflow"))
    return f"{os.cpu_count()} cores, {platform.platform()}, Python {platform.python_version()}, {versions}"
