"""Records of measured lattices, and the page generated from them.

docs/lattices/<recipe>.<dataset>.json     one record, written after a measurement, replaced by the next
docs/lattices.md                          generated from all records, and what has changed since

python -m tasks.records.lattices          # writes the page again
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pipelines.errors import DataError
from pipelines.judging.evaluations.stage import EVALUATION
from pipelines.lineage.disk import write_text_atomically
from pipelines.lineage.store import Store
from pipelines.recipe.definitions import definitions
from pipelines.recipe.lattice import LATTICE
from pipelines.recipe.plan import Plan
from pipelines.reports.elements.axes import count
from pipelines.reports.elements.path_costs import factor_costs, path_costs
from pipelines.reports.elements.wording import capital, metric_name, score, span
from pipelines.reports.score_tables import BASELINE_NAMES
from pipelines.reports.sections.lattice import settled_by
from tasks.datasets.libraries import recipes_for
from tasks.datasets.prepared import Prepared
from tasks.environment import project_root
from tasks.records.claim_conditions import OF_STANDING, machine_record, measured_text, sources_record
from tasks.records.measurements import cost_record, dataset_record, effect_text, read_records, write_record
from tasks.records.reports import provenance_records
from tasks.records.standings import Standing, lattice_standing

RECORDS = Path("docs/lattices")
PAGE = Path("docs/lattices.md")
MARKS: dict[Standing, str] = {"current": "", "stale": ", stale", "gone": ", stale", "unknown": ", code not known"}
"""Mark of a verdict by the standing of its record."""
CONDITIONS = """\
## How each was measured

*Sources differed*: the tree had changes beside the commit, so that the commit alone does not say which code it was.
*Stale*: the code or the settings of a stage have changed since. A record without a date is older than dates in records.

| recipe · data | measured | code |
|---|---|---|"""


def record_lattice(
    root: Path,
    variants: Sequence[str],
    plan: Plan,
    store: Store,
    prepared: Prepared,
    code: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Write the record of a finished measurement, regenerate the page, and return the record. `code`: version and
    commit of cursus where the project is not its checkout.

    Raises DataError when the evaluation is not in the store.
    """
    evaluated = next(step for step in plan.steps if step.name == LATTICE)
    evaluation = store.get(evaluated.fingerprint)
    if evaluation is None:
        raise DataError("the evaluation of the lattice is not in the store; run `cursus lattice` again")
    document = json.loads((evaluation.folder / EVALUATION).read_text(encoding="utf-8"))
    section = next(one for one in document["sections"].values() if "paths" in one)
    baselines = [row for one in document["sections"].values() for row in one.get("baselines", ())]
    records = provenance_records(store, [step.fingerprint for step in plan.steps])
    steps = [{"stage": step.name, "fingerprint": step.fingerprint} for step in plan.steps]
    artifacts = [one for step in plan.steps if (one := store.get(step.fingerprint))]
    families = sorted({prepared.family, *prepared.families.values()})
    costs = path_costs([path["stage"] for path in section["paths"]], steps, records)
    record = {
        "recipe": plan.recipe.name,
        "variants": list(variants),
        "data": dataset_record(prepared, document["dataset"]["texts"]),
        "measured": {key: value for key, value in section.items() if key not in ("headline", "stages")},
        "baselines": [{"name": row["name"], section["metric"]: row.get(section["metric"])} for row in baselines],
        "costs": {stage: asdict(cost) for stage, cost in costs.items()},
        "factor_costs": {name: asdict(cost) for name, cost in factor_costs(section["paths"], steps, records).items()},
        "fingerprint": evaluated.fingerprint,
        "started": evaluation.provenance.environment.started,
        "commit": evaluation.provenance.environment.commit,
        **sources_record(artifacts),
        **({"code": dict(code)} if code else {}),
        "machine": machine_record([one for one in artifacts if one is not evaluation]),
        "families": families,
        "definitions": definitions(plan.recipe, recipes_for(root, prepared.name), families),
        "cost": cost_record([one["environment"]["seconds"] for one in records.values()], len(plan.steps) - 1),
    }
    path = root / RECORDS / f"{'-'.join((plan.recipe.name, *variants))}.{prepared.name}.json"
    write_record(record, path, root / PAGE, lambda: render_page(root))
    return record


def render_page(root: Path) -> str:
    """The text of docs/lattices.md, from the records, and what has changed since each."""
    records = read_records(root / RECORDS)
    lines = [
        "# Effect of each stage",
        "",
        "Written by `cursus lattice` from the records in `docs/lattices/`: do not edit.",
        "",
        "Every subset of the stages before fine-tuning, fine-tuned alike over several seeds and evaluated on the same",
        "test examples. The effect of a stage is the mean score of the paths with it minus that of the paths without",
        "it, in brackets its 95 % interval over seeds and examples; the verdict uses p after Holm's correction over",
        "the stages of a lattice. One model was trained of each stage on plain text: the variance between",
        "pre-trainings is in no interval. *Training majority* answers every example with the most frequent class of",
        "the training table, *most frequent test class* with that of the test table, the best that one answer can",
        "score; a record without the second is older than it. When, at which commit and of which code each was",
        "measured is [below](#how-each-was-measured).",
        "",
        "| recipe · data | seeds × test | stage | effect [95 %] | p, Holm | tokens, minutes | verdict | settled by |",
        "|---|---|---|---|---|---|---|---|",
    ]
    standings = [lattice_standing(root, record) for record in records]
    for record, standing in zip(records, standings, strict=True):
        measured, metric = record["measured"], record["measured"]["metric"]
        seeds = min(len(path["seeds"]) for path in measured["paths"])
        for effect in measured["effects"]:
            if len(effect["of"]) > 1:
                continue
            (factor,) = effect["of"]
            cost = record["factor_costs"].get(factor)
            cells = [
                f"{_name(record)} · {record['data']['dataset']}",
                f"{seeds} × {measured['examples']:,}",
                factor,
                effect_text(effect, metric),
                f"{effect['p_holm']:.3f}",
                f"{count(cost['tokens'])}, {cost['minutes']:.1f}" if cost else "",
                f"**{effect['verdict']}**{MARKS[standing]}",
                settled_by(effect),
            ]
            lines.append("| " + " | ".join(cells) + " |")
    for record in records:
        lines += _paths(record)
    if records:
        lines += ["", CONDITIONS]
    for record, standing in zip(records, standings, strict=True):
        cells = [f"{_name(record)} · {record['data']['dataset']}", measured_text(record), OF_STANDING[standing]]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _paths(record: Mapping[str, Any]) -> list[str]:
    measured, metric = record["measured"], record["measured"]["metric"]
    examples, sizes = record["data"]["examples"], measured["sizes"]
    heads = [f"{size['labelled'] or examples['train']:,} labels" for size in sizes]
    lines = [
        "",
        f"## {_name(record)} on {record['data']['dataset']}",
        "",
        f"{capital(metric_name(metric))} of every path, {examples['test']:,} test examples; "
        f"{record['cost']['models']} models in {record['cost']['seconds'] / 60:.0f} minutes of computing.",
        "",
        f"| stages before fine-tuning | {' | '.join(heads)} |",
        f"|---|{'---|' * len(heads)}",
    ]
    for row in zip(*(size["paths"] for size in sizes), strict=True):
        scores = [
            f"{score(path['score']['mean'], metric)} [{span(path['score']['low'], path['score']['high'], metric)}]"
            for path in row
        ]
        lines.append(f"| {' + '.join(row[0]['through']) or 'from scratch'} | {' | '.join(scores)} |")
    for baseline in record["baselines"]:
        if (estimate := baseline.get(metric)) is not None:
            interval = span(estimate["low"], estimate["high"], metric)
            value = f"{score(estimate['mean'], metric)} [{interval}]"
            name = BASELINE_NAMES.get(baseline["name"], baseline["name"])
            lines.append(f"| *{name}* | {' | '.join(['' for _ in heads[1:]] + [value])} |")
    return lines


def _name(record: Mapping[str, Any]) -> str:
    return " ".join((record["recipe"], *record["variants"]))


if __name__ == "__main__":
    write_text_atomically(project_root() / PAGE, render_page(project_root()))
