"""The flow `stage`: compute one stage of a recipe, and those of its dependencies that are not in the store."""

from __future__ import annotations

from prefect import flow
from prefect.runtime import flow_run
from pydantic import Field

from flows.process.computing import begin
from flows.regime import RegimeResult, RunConfig, carry_out


class StageConfig(RunConfig):
    """The stage, its recipe and the dataset."""

    stage: str = Field(description="The stage to compute.")


def _run_name() -> str:
    config = StageConfig.model_validate(flow_run.parameters["config"])
    return config.name(config.stage)


@flow(name="stage", flow_run_name=_run_name, validate_parameters=True)
def stage(config: StageConfig) -> RegimeResult:
    """Compute one stage of a recipe."""
    return begin(lambda root: carry_out(config.request(root), root, threads=config.threads, until=config.stage))
