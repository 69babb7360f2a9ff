"""The flow `claim`: train the systems that a published claim compares, and record the comparison."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prefect import flow
from prefect.runtime import flow_run
from pydantic import BaseModel, ConfigDict, Field

from flows.process.computing import begin
from flows.regime import carry_out
from pipelines.lineage.store import Store
from tasks.datasets.claim_requests import ClaimRequest
from tasks.datasets.planning import make_plan, store_folder
from tasks.datasets.prepared import open_prepared
from tasks.records.claims import record_claim
from tasks.records.measured_claim import MeasuredClaim, MeasuredPart
from tasks.records.systems import write_page
from tasks.records.tuning import Tuning
from tasks.stages.code import code_of


class ClaimConfig(BaseModel):
    """The claim, the datasets, and the size of the measurement."""

    model_config = ConfigDict(extra="forbid")

    claim: str = Field(description="recipe/claim, for example crf/entities.")
    data: list[str] = Field(
        [],
        description="Datasets in place of the claim's own: one, or role=dataset each for a claim about several.",
    )
    variants: list[str] = Field([], description="Variants of the recipe, for example hour or minilm.")
    seeds: int | None = Field(None, ge=1, description="Models on each side; the claim's own number when empty.")
    draws: int | None = Field(
        None, ge=1, description="Draws of pre-training on each side; the claim's own number when empty."
    )
    smoke: bool = Field(False, description="Tiny sizes and budgets: only tests that everything runs; not recorded.")
    threads: int | None = Field(None, ge=1, description="Processor cores for training; all when empty.")


class ClaimResult(BaseModel):
    """The result of a measurement."""

    record: dict[str, Any] | None
    """What was recorded; None for a smoke run, which measures nothing."""


def _run_name() -> str:
    config = ClaimConfig.model_validate(flow_run.parameters["config"])
    on = f" on {', '.join(config.data)}" if config.data else ""
    return ", ".join([f"claim {config.claim}{on}", *config.variants, *(["smoke"] if config.smoke else [])])


@flow(name="claim", flow_run_name=_run_name, validate_parameters=True)
def claim(config: ClaimConfig) -> ClaimResult:
    """Measure a published claim: systems against each other, and what they had in common."""
    return begin(lambda root: _measure(config, root))


def _measure(config: ClaimConfig, root: Path) -> ClaimResult:
    requested = ClaimRequest.resolve(
        root, config.claim, config.data, config.variants, config.seeds, config.smoke, config.draws
    )
    store = Store(store_folder(root))
    measured = {}
    for part in requested.parts:
        tuning = None
        if requested.claim.tune:
            grid = requested.grid(root, part)
            carry_out(grid, root, threads=config.threads)
            searched = make_plan(root, grid, open_prepared(part.trained, root))
            tuning = Tuning.of(requested, part, searched, store)
            requested = requested.chosen(part, tuning.chosen)
        request = requested.of_part(root, part)
        carry_out(request, root, threads=config.threads)
        prepared, judged = open_prepared(part.trained, root), open_prepared(part.judged, root)
        measured[part] = MeasuredPart(make_plan(root, request, prepared), prepared, judged, tuning)
    if config.smoke:
        return ClaimResult(record=None)
    finished = MeasuredClaim(requested.recipe, requested.label, requested.claim, measured, store)
    record = record_claim(root, finished, config.variants, code_of(root))
    write_page(root)
    return ClaimResult(record=record)
