"""The flow `stage`: compute one stage of a recipe, and those of its dependencies that are not in the store."""

from __future__ import annotations

from prefect import flow
from pydantic import Field

from flows.regime import RegimeConfig, RegimeResult, regime


class StageConfig(RegimeConfig):
    """The stage, its recipe and the dataset."""

    until: str = Field("general", description="The stage to compute.")


@flow(name="stage", validate_parameters=True)
def stage(config: StageConfig = StageConfig()) -> RegimeResult:  # noqa: B008  # Prefect shows the defaults in its form
    """Compute one stage of a recipe."""
    return regime(RegimeConfig.model_validate(config.model_dump()))
