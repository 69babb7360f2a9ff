"""Records of measured claims, and the page generated from them.

docs/claims/<recipe>.<claim>.json     one record, written after a measurement, replaced by the next
docs/claims.md                        generated from all records and nothing else
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from pipelines.errors import DataError
from pipelines.judging.evaluations.stage import EVALUATION
from pipelines.lineage.store import Store
from pipelines.recipe.claims import COMPARISON, claim_of
from pipelines.recipe.plan import Plan
from tasks.datasets.prepared import Prepared
from tasks.records.measurements import cost_record, dataset_record, read_records, write_record

RECORDS = Path("docs/claims")
PAGE = Path("docs/claims.md")
Verdict = Literal["reproduced", "not reproduced", "cannot tell at this scale"]


def verdict(low: float, high: float, at_least: float) -> Verdict:
    """Whether the 95 % interval of the difference is above the claimed minimum, below it, or contains it."""
    return "reproduced" if low > at_least else "not reproduced" if high < at_least else "cannot tell at this scale"


def record_claim(root: Path, name: str, plan: Plan, store: Store, prepared: Prepared) -> dict[str, Any]:
    """Write the record of a finished measurement, regenerate the page, and return the record.

    Raises DataError when the comparison is not in the store.
    """
    from pyarrow import parquet

    claim = claim_of(plan.recipe, name)
    evaluated = next(step for step in plan.steps if step.name == COMPARISON)
    comparison = store.get(evaluated.fingerprint)
    if comparison is None:
        raise DataError(f"the comparison of claim {name} is not in the store; run `cursus claim {name}` again")
    sections = json.loads((comparison.folder / EVALUATION).read_text(encoding="utf-8"))["sections"]
    (section,) = sections.values()
    (step,) = section["ladder"]
    metric = section["verdict_metric"]
    sides = {}
    for role, stage in (("baseline", claim.baseline), ("system", claim.system)):
        trained = [artifact for step in plan.steps if step.name == stage and (artifact := store.get(step.fingerprint))]
        measured = next(one for one in section["stages"] if one["stage"] == stage)
        sides[role] = {
            "stage": stage,
            **{one: measured[one] for one in section["metrics"]},
            "fingerprints": [artifact.fingerprint for artifact in trained],
            "parameters": trained[0].provenance.result.get("parameters", 0),
            "tokens": sum(artifact.provenance.result.get("tokens", 0) for artifact in trained),
            "seconds": round(sum(artifact.provenance.environment.seconds for artifact in trained), 1),
        }
    everything = [artifact for step in plan.steps if (artifact := store.get(step.fingerprint))]
    examples = {table: parquet.read_metadata(prepared.tables[table]).num_rows for table in ("train", "test")}
    record = {
        "claim": name,
        "recipe": plan.recipe.name,
        "paper": plan.recipe.paper,
        "says": claim.says,
        "published": claim.published,
        "data": dataset_record(prepared, examples),
        "metric": metric,
        "at_least": claim.at_least,
        "seeds": len(sides["system"]["fingerprints"]),
        "effect": step[metric],
        "verdict": verdict(step[metric]["low"], step[metric]["high"], claim.at_least),
        "other_metrics": {one: step[one] for one in section["metrics"] if one != metric},
        "baseline": sides["baseline"],
        "system": sides["system"],
        "commit": comparison.provenance.environment.commit,
        "cost": cost_record([artifact.provenance.environment.seconds for artifact in everything], len(everything) - 1),
    }
    path = root / RECORDS / f"{plan.recipe.name}.{name}.{prepared.name}.json"
    write_record(record, path, root / PAGE, lambda: render_page(root))
    return record


def render_page(root: Path) -> str:
    """The text of docs/claims.md, from the records alone."""
    records = read_records(root / RECORDS)
    lines = [
        "# Claims",
        "",
        "Written by `cursus claim` from the records in `docs/claims/`: do not edit.",
        "",
        "The effect is the system's score minus the baseline's on the same test examples, both trained on the same",
        "data, tokens, steps and seeds; in brackets its 95 % interval, bootstrapped over seeds and examples.",
        "*Reproduced* means that the whole interval is above the claimed minimum, *not reproduced* that it is below.",
        "The published figures were noted without access to the papers: look them up before you quote them.",
        "",
        "| claim | data | metric | baseline | system | effect [95 %] | verdict | published | seeds | cost |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for record in records:
        metric, effect, examples = record["metric"], record["effect"], record["data"]["examples"]
        required = f" (required: above {record['at_least']:+.3f})" if record["at_least"] else ""
        cells = [
            f"**{record['recipe']} · {record['claim']}**: {record['says']} ({record['paper']})",
            f"{record['data']['dataset']}, {examples['train']} train, {examples['test']} test",
            metric,
            f"{record['baseline']['stage']} {record['baseline'][metric]['mean']:.3f}",
            f"{record['system']['stage']} {record['system'][metric]['mean']:.3f}",
            f"{effect['difference']:+.3f} [{effect['low']:+.3f}, {effect['high']:+.3f}]{required}",
            f"**{record['verdict']}**",
            record["published"],
            str(record["seeds"]),
            f"{record['cost']['seconds'] / 60:.0f} min, {record['cost']['models']} models",
        ]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    lines += [
        "",
        "## Other metrics",
        "",
        "| claim | metric | baseline | system | effect [95 %] |",
        "|---|---|---|---|---|",
    ]
    for record in records:
        for metric, effect in record["other_metrics"].items():
            lines.append(
                f"| {record['recipe']} · {record['claim']} | {metric} | {record['baseline'][metric]['mean']:.3f} | "
                f"{record['system'][metric]['mean']:.3f} | {effect['difference']:+.3f} "
                f"[{effect['low']:+.3f}, {effect['high']:+.3f}] |"
            )
    return "\n".join(lines) + "\n"
