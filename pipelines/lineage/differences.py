"""Compare two records of what should be the same result: files that differ, and recorded conditions that differ.

    differing_files(before, after)      # {"model.safetensors": "3f2a9c01 → 77ab01c2"}
    reasons(before, after)              # ["torch 2.13.0 then, 2.14.0 here"]

Only recorded conditions are compared: a reason is a difference that can explain the result, not a proof that it did.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from pipelines.lineage.provenance import Environment, Provenance

SHORT = 8
"""Number of digits shown of a digest."""
HARMLESS = {"log_every", "checkpoint_every"}
"""Settings of a job for how often it writes, which cannot change a weight."""
NOTHING = "nothing that is recorded differs: the same code, libraries, device, threads, ranks, seed and data"


def differing_files(before: Provenance, after: Provenance) -> dict[str, str]:
    """Name → digests before and after, of the files that are not byte for byte the same."""
    changed = {}
    for name in sorted({*before.files, *after.files}):
        then, now = before.files.get(name), after.files.get(name)
        if then is None or now is None or then.sha256 != now.sha256:
            changed[name] = f"{then.sha256[:SHORT] if then else 'absent'} → {now.sha256[:SHORT] if now else 'absent'}"
    return changed


def reasons(before: Provenance, after: Provenance) -> list[str]:
    """All recorded differences in what a result depends on, the likeliest reason first."""
    return list(
        chain(
            _of_identity(before.identity, after.identity),
            _of_environment(before.environment, after.environment),
        )
    )


def _of_identity(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    tables = before.get("data", {})
    for table in sorted({*tables, *after.get("data", {})}):
        then, now = tables.get(table), after.get("data", {}).get(table)
        if then != now:
            yield f"the table {table} has changed: md5 {_short(then)} then, {_short(now)} here"
    if before.get("checkpoint") != after.get("checkpoint"):
        then, now = _short(before.get("checkpoint")), _short(after.get("checkpoint"))
        yield f"the checkpoint it started from has changed: sha256 {then} then, {now} here"
    for key in ("seed", "stage", "family"):
        if before.get(key) != after.get(key):
            yield f"another {key}: {_first_difference(before.get(key), after.get(key))}"
    if before.get("code") != after.get("code"):
        yield f"the code of its parts has changed: {_short(before.get('code'))} then, {_short(after.get('code'))} here"


def _of_environment(before: Environment, after: Environment) -> Iterator[str]:
    for name in sorted({*before.packages, *after.packages}):
        then, now = before.packages.get(name, "absent"), after.packages.get(name, "absent")
        if then != now:
            yield f"{name} {then} then, {now} here"
    if before.python != after.python:
        yield f"Python {before.python} then, {after.python} here"
    if None not in (before.device, after.device) and before.device != after.device:
        yield f"another device: {before.device} then, {after.device} here"
    if None not in (before.compiled, after.compiled) and before.compiled != after.compiled:
        kernels = {True: "kernels compiled for the machine", False: "torch's own kernels", None: ""}
        yield f"{kernels[before.compiled]} then, {kernels[after.compiled]} here"
    for key in sorted(before.runtime.keys() & after.runtime.keys() - HARMLESS):
        then, now = before.runtime[key], after.runtime[key]
        if then != now:
            yield f"{key}: {_text(then)} then, {_text(now)} here"
    if before.platform != after.platform:
        yield f"{before.platform} then, {after.platform} here"


def _first_difference(before: Any, after: Any, path: str = "") -> str:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in sorted({*before, *after}):
            if before.get(key) != after.get(key):
                return _first_difference(before.get(key), after.get(key), f"{path}{'.' if path else ''}{key}")
    return f"{path + ' ' if path else ''}{before!r} then, {after!r} here"


def _text(value: Any) -> str:
    return str(value["name"] if isinstance(value, Mapping) and "name" in value else value)


def _short(digest: str | None) -> str:
    return digest[:SHORT] if digest else "none"
