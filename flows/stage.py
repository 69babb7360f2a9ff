"""One stage of a recipe, and whatever it needs that is not in the store yet."""

from __future__ import annotations

from prefect import flow
from pydantic import Field

from flows.regime import RegimeConfig, RegimeResult, regime


class StageConfig(RegimeConfig):
    """Which stage, of what, on what."""

    until: str = Field("general", description="The stage to make.")


@flow(name="stage", validate_parameters=True)
def stage(config: StageConfig = StageConfig()) -> RegimeResult:  # noqa: B008  # Prefect shows the defaults in its form
    """Make one stage of a recipe."""
    return regime(RegimeConfig.model_validate(config.model_dump()))
