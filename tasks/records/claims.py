"""Records of measured claims, and the page generated from them.

docs/claims/<recipe>.<claim>.<data>.json   one record, written after a measurement, replaced by the next; the data of a
                                           claim about several datasets are joined by `+`, variants of the recipe follow
docs/claims/<form>.svg                     all claims of a form, generated from their records
docs/claims/explanations.yaml              why claims were not reproduced, written by hand
docs/published.yaml                        which published figures were compared with a source, written by hand
docs/claims.md                             generated from all records, their explanations, and what has changed since

python -m tasks.records.claims             # writes page and drawings again

A record of a system against one baseline has `baseline`, `system`, `effect` and `other_metrics`; one of any other form,
or of a figure that is no metric of a task, has `sides` and `contrasts`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyarrow import parquet

from pipelines.judging.certainty.resampling import RESAMPLES
from pipelines.judging.claims import ComparedSide, Verdict
from pipelines.judging.claims.judgement import MeasuredSide, estimate, verdict_of_all
from pipelines.judging.claims.pair import PairForm
from pipelines.judging.samples import CONSTANT
from pipelines.lineage.disk import write_text_atomically
from pipelines.lineage.locks import Lock
from pipelines.recipe.claim import Claim
from pipelines.recipe.claims import Measurement
from pipelines.task_families.labelled_tables import MAIN, labelled_table
from tasks.datasets.prepared import Prepared
from tasks.environment import project_root, state_folder
from tasks.records.claim_conditions import items_record, machine_record, sources_record
from tasks.records.claims_page import render_claims
from tasks.records.claims_plots import drawings
from tasks.records.explanations import read_explanations
from tasks.records.fairness import fairness_record, training_record
from tasks.records.measured_claim import MeasuredClaim
from tasks.records.measurements import cost_record, dataset_record, named_records, read_records, write_record
from tasks.records.published import published_sentence, read_published, with_corrections
from tasks.records.standings import measured_definitions, standing

RECORDS = Path("docs/claims")
PAGE = Path("docs/claims.md")
TOO_NEAR: Verdict = "too near chance"


def record_claim(
    root: Path, measured: MeasuredClaim, variants: Sequence[str] = (), code: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Write the record of a finished measurement, regenerate the page, and return the record. `code`: version and
    commit of cursus where the project is not its checkout."""
    record = claim_record(root, measured, variants) | ({"code": dict(code)} if code else {})
    data = "+".join(dict.fromkeys(name for part in measured.parts for name in (part.trained, part.judged)))
    path = root / RECORDS / f"{'.'.join((measured.recipe.name, measured.name, data, *variants))}.json"
    # two measurements may end at the same time: the page of the later one has both
    lock = Lock.take(state_folder(root) / "locks" / "claims-page", wait=True)
    assert lock is not None
    try:
        write_record(record, path, root / PAGE, lambda: render_page(root))
        write_drawings(root)
    finally:
        lock.release()
    return record


def claim_record(root: Path, measured: MeasuredClaim, variants: Sequence[str] = ()) -> dict[str, Any]:
    """The record of a measurement: what was claimed, what was measured of whom, and what it cost."""
    claim, figure = measured.claim, measured.figure
    artifacts = measured.everything
    comparisons = [one for one in measured.comparisons.values() if one is not None]
    newest = max(comparisons or artifacts.values(), key=lambda one: one.provenance.environment.started)
    seconds = [one.provenance.environment.seconds for one in artifacts.values()]
    return {
        "claim": measured.name,
        "recipe": measured.recipe.name,
        "variants": list(variants),
        "paper": measured.recipe.paper,
        "says": claim.says,
        "published": claim.published,
        "form": claim.form.model_dump(mode="json"),
        "data": _data(claim, measured),
        "on": claim.data,
        "metric": figure.name,
        "unit": figure.unit,
        "judge": next(iter(measured.sources.values())).judge,
        "lower": measured.lower,
        "seeds": max(len(measured.trained(side)) // measured.draws(side) for side in measured.sides),
        "pretraining_draws": max(map(measured.draws, measured.sides)),
        "draws": {"resamples": RESAMPLES, "seed": measured.seed},
        "verdict": TOO_NEAR if measured.near_chance else verdict_of_all([one.verdict for one in measured.contrasts]),
        "baselines": _baselines(measured),
        **(_pair(measured) if is_pair(measured) else _sides_and_contrasts(measured)),
        "fairness": _fairness(measured),
        "tuning": [one.tuning.record(part.trained) for part, one in measured.parts.items() if one.tuning],
        "started": newest.provenance.environment.started,
        "commit": newest.provenance.environment.commit,
        **sources_record(list(artifacts.values())),
        "machine": machine_record([one for side in measured.sides for one in measured.trained(side)]),
        "items": items_record(comparisons),
        **measured_definitions(root, measured),
        "cost": cost_record(seconds, len(artifacts) - len(comparisons)),
    }


def is_pair(measured: MeasuredClaim) -> bool:
    """Whether a record has a baseline and a system with their difference in a metric of a task, on one dataset."""
    form = measured.claim.form
    return isinstance(form, PairForm) and not (form.ratio or form.roles) and _is_metric(measured)


def _is_metric(measured: MeasuredClaim) -> bool:
    return not measured.figure.unit and measured.figure.bounds == (-1.0, 1.0)


def _pair(measured: MeasuredClaim) -> dict[str, Any]:
    (judged,) = measured.contrasts
    figures = [measured.figure, *measured.other_figures]
    return {
        "at_least": judged.at_least,
        "effect": _difference(judged.record()),
        "other_metrics": {one.name: _difference(measured.judged(one)[0].record()) for one in measured.other_figures},
        **{
            role: {
                "stage": side.stage,
                **{one.name: measured.estimate(side, one) for one in figures},
                **_models(measured, side),
            }
            for role, side in zip(("system", "baseline"), measured.claim.form.sides(), strict=True)
        },
    }


def _difference(judged: Mapping[str, Any]) -> dict[str, Any]:
    low, high = judged["low"], judged["high"]
    verdict = "better" if low > 0 else "worse" if high < 0 else "cannot tell"
    return {
        "difference": judged["effect"],
        "low": low,
        "high": high,
        "verdict": verdict,
        "variance": judged["variance"],
    }


def _sides_and_contrasts(measured: MeasuredClaim) -> dict[str, Any]:
    return {
        "share": _is_metric(measured),
        "ratio": measured.claim.form.ratio,
        "exact": measured.figure.exact,
        "contrasts": [one.record() for one in measured.contrasts],
        "sides": [
            {
                "stage": side.stage,
                "trained": part.trained,
                "judged": part.judged,
                "task": part.task,
                "figure": measured.estimate(side, measured.figure),
                **_models(measured, side),
            }
            for side, part in measured.sides.items()
        ],
    }


def _fairness(measured: MeasuredClaim) -> dict[str, Any]:
    models = [measured.trained(side) for side in measured.claim.form.sides()]
    return fairness_record(
        [_training(measured, side) for side in measured.claim.form.sides()],
        [one[0].provenance.result.get("parameters", 0) for one in models],
        [one[0].provenance.identity.get("stage", {}) for one in models],
    )


def _training(measured: MeasuredClaim, side: ComparedSide) -> dict[str, Any]:
    part = measured.sides[side]
    examples = _examples(measured.parts[part].prepared, part)
    return training_record(measured.trained(side), measured.everything, examples)


def _baselines(measured: MeasuredClaim) -> list[dict[str, Any]]:
    """The figure of every baseline without a network, on each set of items that the claim judges."""
    result = []
    for side in {measured.sides[side].items: side for side in measured.sides}.values():
        score = measured.measured(side, measured.figure).score
        for name, rows in measured.baselines(side, measured.figure).items():
            one = estimate(measured.figure, MeasuredSide([rows], "", score), measured.seed)
            kind, _, label = name.partition(":")
            result.append(
                {
                    "name": label,
                    "binds": f"{kind}:" == CONSTANT,
                    "judged": measured.sides[side].judged,
                    "figure": one.record(),
                }
            )
    return result


def _models(measured: MeasuredClaim, side: ComparedSide) -> dict[str, Any]:
    trained = measured.trained(side)
    return {
        "fingerprints": [one.fingerprint for one in trained],
        "pretraining_draws": measured.draws(side),
        "parameters": trained[0].provenance.result.get("parameters", 0),
        "tokens": sum(one.provenance.result.get("tokens", 0) for one in trained),
        "seconds": round(sum(one.provenance.environment.seconds for one in trained), 1),
        "training": _training(measured, side),
    }


def _data(claim: Claim, measured: MeasuredClaim) -> dict[str, Any]:
    """The dataset; of several, each by its name."""
    known: dict[str, dict[str, Any]] = {}
    for part, one in measured.parts.items():
        for prepared in (one.prepared, one.judged):
            known.setdefault(prepared.name, dataset_record(prepared, _examples(prepared, part)))
    return next(iter(known.values())) if len(known) == 1 else {"several": list(known.values())}


def _examples(prepared: Prepared, part: Measurement) -> dict[str, int]:
    tables = {one: labelled_table(part.task or MAIN, one) for one in ("train", "test")}
    return {
        one: parquet.read_metadata(prepared.tables[table]).num_rows
        for one, table in tables.items()
        if table in prepared.tables
    }


def render_page(root: Path) -> str:
    """The text of docs/claims.md, from the records, their explanations, and what has changed since each.

    Raises RecipeError for explanations, or comparisons of published figures, that cannot be read.
    """
    published = read_published(root)
    records = with_corrections(named_records(root / RECORDS), published)
    standings = {name: standing(root, one) for name, one in records.items()}
    sentence = published_sentence(records.values(), published)
    return render_claims(records, standings, read_explanations(root / RECORDS), sentence)


def write_drawings(root: Path) -> None:
    """Write the drawing of every form that has a record, and remove the others."""
    drawn = drawings(read_records(root / RECORDS))
    for stale in {path.stem for path in (root / RECORDS).glob("*.svg")} - set(drawn):
        (root / RECORDS / f"{stale}.svg").unlink()
    for form, text in drawn.items():
        write_text_atomically(root / RECORDS / f"{form}.svg", text)


if __name__ == "__main__":
    write_text_atomically(project_root() / PAGE, render_page(project_root()))
    write_drawings(project_root())
