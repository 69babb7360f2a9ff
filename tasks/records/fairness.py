"""What the sides of a measured claim had in common, and what not: counted from the records of their training.

    side ──▶ training_record      seeds, tokens, steps, epochs, parameters, what came before, rates, tables, curves
    sides ─▶ fairness_record      {"equal": names, "different": {name: a value of each side}}
    record ▶ fairness_text        the sentence of the page and of the terminal

Early stopping lets one side read more than the other, and two stages may differ in more than a claim is about: nothing
is called equal that the records do not show to be.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from statistics import mean
from typing import Any

from pipelines.lineage.results import METRICS
from pipelines.lineage.store import Artifact

START = "start"
"""Role of the model that one continues, among the parents of its record."""
POINTS = 12
"""Points of a recorded curve."""
LOSSES = ("validation/loss", "train/loss")
"""Curves that are recorded, the first that was logged."""
NUMBERS = ("tokens", "steps", "epochs", "parameters", "tokens before", "rate")
"""What is compared as numbers, in the order of the page; `before` is what the stages before the compared ones did."""
BEFORE_FAIRNESS = "tokens and parameters only: recorded before steps, rates and settings were"
"""Remark on records that do not have `fairness`."""


def training_record(
    models: Sequence[Artifact], everything: Mapping[str, Artifact], examples: Mapping[str, int]
) -> dict[str, Any]:
    """What a side was trained with: of its `models`, one a seed, and of their ancestors among `everything`.

    `examples` are the numbers of labelled examples in the tables of its dataset.
    """
    results = [one.provenance.result for one in models]
    first = models[0].provenance
    ancestors = _ancestors(models[0], everything)
    return {
        "of_each_seed": {
            "seed": [one.provenance.seed for one in models],
            "tokens": [int(one.get("tokens", 0)) for one in results],
            "steps": [int(one.get("steps", 0)) for one in results],
            "epochs": [_epochs(one, examples) for one in models],
            "seconds": [one.provenance.environment.seconds for one in models],
        },
        "rate": first.identity.get("stage", {}).get("optimizer", {}).get("lr"),
        "before": {
            "stages": sorted({one.provenance.stage for one in ancestors}),
            "tokens": sum(int(one.provenance.result.get("tokens", 0)) for one in ancestors),
            "steps": sum(int(one.provenance.result.get("steps", 0)) for one in ancestors),
        },
        "tables": dict(
            sorted(
                (table, source.digest)
                for one in (models[0], *ancestors)
                for table, source in one.provenance.data.items()
            )
        ),
        "curves": {
            "sha256": [one.provenance.files[METRICS].sha256 for one in models if METRICS in one.provenance.files],
            "of_the_first_seed": _curve(models[0]),
        },
    }


def fairness_record(
    trained: Sequence[Mapping[str, Any]], parameters: Sequence[int], stages: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """What the sides have in common: `trained` are their training records, `stages` their settings as identified."""
    values: dict[str, list[Any]] = {
        "seeds": [len(one["of_each_seed"]["seed"]) for one in trained],
        "data": [json.dumps(one["tables"]) for one in trained],
        "tokens": [mean(one["of_each_seed"]["tokens"]) for one in trained],
        "steps": [mean(one["of_each_seed"]["steps"]) for one in trained],
        "epochs": [_mean(one["of_each_seed"]["epochs"]) for one in trained],
        "parameters": list(parameters),
        "rate": [one["rate"] for one in trained],
        "tokens before": [one["before"]["tokens"] for one in trained],
    }
    equal = [name for name, several in values.items() if len(set(several)) == 1 and several[0] not in (None, 0)]
    different: dict[str, Any] = {name: values[name] for name in NUMBERS if len(set(values[name])) > 1}
    if len(set(values["seeds"])) > 1:
        different["seeds"] = values["seeds"]
    if len(set(values["data"])) > 1:
        different["tables"] = [sorted(one["tables"]) for one in trained]
    if settings := differing_settings(stages):
        different["settings"] = settings
    return {"equal": equal, "different": different}


def differing_settings(stages: Sequence[Mapping[str, Any]]) -> list[str]:
    """The keys of `stages` that do not have one value, at the depth at which they differ: `optimizer.lr`."""
    keys = dict.fromkeys(key for one in stages for key in one)
    result = []
    for key in keys:
        values = [one.get(key) for one in stages]
        if all(value == values[0] for value in values):
            continue
        if all(isinstance(value, Mapping) and "name" not in value for value in values):
            result += [f"{key}.{inner}" for inner in differing_settings([dict(value or {}) for value in values])]
        else:
            result.append(key)
    return result


def fairness_text(record: Mapping[str, Any]) -> str:
    """What was equal on all sides of a record, and what was not, as a phrase."""
    known = record.get("fairness")
    equal, different = (known["equal"], known["different"]) if known else _of_old(record)
    written = [f"{name} {_values(name, values)}" for name, values in different.items()]
    text = f"equal: {', '.join(equal) or 'nothing'}"
    if written:
        text += f"; not: {'; '.join(written)}"
    return text if known else f"{text} ({BEFORE_FAIRNESS})"


def sides_of(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The sides of a record of either kind, the best of the claim first."""
    return [record["system"], record["baseline"]] if "effect" in record else list(record["sides"])


def _of_old(record: Mapping[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """The same of a record that has the tokens of all models of a side together."""
    sides = sides_of(record)
    values = {name: [side.get(name, 0) for side in sides] for name in ("tokens", "parameters")}
    values["tokens"] = [
        tokens / max(1, len(side["fingerprints"])) for tokens, side in zip(values["tokens"], sides, strict=True)
    ]
    values["seeds"] = [len(side["fingerprints"]) for side in sides]
    equal = [name for name, several in values.items() if len(set(several)) == 1 and several[0]]
    return equal, {name: several for name, several in values.items() if len(set(several)) > 1}


def _values(name: str, values: Sequence[Any]) -> str:
    if name == "settings":
        return ", ".join(values)
    if name == "tables":
        return " / ".join("+".join(one) for one in values)
    if name == "rate":
        return " / ".join("–" if one is None else f"{one:g}" for one in values)
    if name == "epochs":
        return " / ".join("–" if one is None else f"{one:.3g}" for one in values)
    return " / ".join(f"{one:,.0f}" if abs(one) >= 1000 else f"{one:g}" for one in values)


def _ancestors(model: Artifact, everything: Mapping[str, Artifact]) -> list[Artifact]:
    """What a model was made of, each once, without itself."""
    pending = _read_by(model)
    seen: dict[str, Artifact] = {}
    while pending:
        fingerprint = pending.pop()
        if fingerprint in everything and fingerprint not in seen:
            seen[fingerprint] = everything[fingerprint]
            pending += _read_by(everything[fingerprint])
    return list(seen.values())


def _read_by(model: Artifact) -> list[str]:
    """The models that one was made of; random weights take only a shape and a vocabulary from their start."""
    shape = {START} if model.provenance.identity.get("untrained") else set[str]()
    return [one for role, one in model.provenance.parents.items() if role not in shape]


def _epochs(model: Artifact, examples: Mapping[str, int]) -> float | None:
    """Passes over the labelled examples; None where the stage reads plain text, or several tasks."""
    stage, steps = model.provenance.identity.get("stage", {}), int(model.provenance.result.get("steps", 0))
    budget = stage.get("budget") or {}
    if model.provenance.kind != "finetune" or stage.get("lines") or not steps or not examples.get("train"):
        return None
    rows = min(examples["train"], budget.get("labelled") or examples["train"])
    return round(steps / ceil(rows / int(budget["batch_texts"])), 2)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [one for one in values if one is not None]
    return mean(known) if known else None


def _curve(model: Artifact) -> dict[str, Any] | None:
    """At most `POINTS` points of a model's loss by optimizer step, the last among them; None where none was logged."""
    path = model.folder / METRICS
    if not path.is_file():
        return None
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for name in LOSSES:
        points = [[line.get("step", 0), round(float(line[name]), 4)] for line in lines if name in line]
        if points:
            every = ceil(len(points) / POINTS)
            kept = points[::-1][::every][::-1]
            return {"metric": name, "points": kept}
    return None
