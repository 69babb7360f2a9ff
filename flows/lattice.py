"""The flow `lattice`: every subset of the stages before fine-tuning, as one tree, to measure which of them helps."""

from __future__ import annotations

from prefect import flow
from prefect.runtime import flow_run
from pydantic import BaseModel, ConfigDict, Field

from flows.process.computing import begin
from flows.process.run_name import request_name
from flows.regime import RegimeResult, carry_out
from tasks.datasets.planning import lattice_request


class LatticeConfig(BaseModel):
    """The recipe whose stages are varied, the dataset, and the size of the experiment."""

    model_config = ConfigDict(extra="forbid")

    dataset: str | None = Field(None, description="A dataset of params.yaml; its default when empty.")
    recipe: str | None = Field(None, description="A recipe of the folder recipes/; the dataset's own when empty.")
    variants: list[str] = Field([], description="Variants of the recipe, for example hour or minilm.")
    seeds: int | None = Field(None, ge=2, description="Fine-tuning seeds of every path; 5 when empty.")
    sizes: list[int] = Field([], description="Further numbers of labelled examples, for learning curves.")
    smoke: bool = Field(False, description="Tiny sizes and budgets: only tests that everything runs.")
    threads: int | None = Field(None, ge=1, description="Processor cores for training; all when empty.")


def _run_name() -> str:
    config = LatticeConfig.model_validate(flow_run.parameters.get("config") or {})
    return f"lattice of {request_name(config.dataset, config.recipe, config.variants, smoke=config.smoke)}"


@flow(name="lattice", flow_run_name=_run_name, validate_parameters=True)
# Prefect shows the defaults in its form
def lattice(config: LatticeConfig = LatticeConfig()) -> RegimeResult:  # noqa: B008
    """Every subset of {general, domain, task-adaptive} before fine-tuning, judged as a factorial experiment."""
    arguments = config.model_dump(exclude={"threads"})
    return begin(lambda root: carry_out(lattice_request(root, **arguments), root, threads=config.threads))
