"""Where and on how many devices training runs, as params.yaml says under `training:`; none of it moves a fingerprint."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SerializeAsAny, ValidationError

from pipelines.corpora.settings.dataset import FILE, read_params
from pipelines.errors import RecipeError
from pipelines.lineage import hardware
from pipelines.parts.distributions import Distribution
from pipelines.recipe.job import Runtime
from pipelines.recipe.schema import Stage
from tasks.launchers import Launcher


class TrainingSettings(BaseModel):
    """The block `training:` of params.yaml."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    launcher: SerializeAsAny[Launcher] = Field(default_factory=Launcher.usually)
    devices: int = Field(1, ge=1)
    """Ranks on each node: GPUs, or processes where there are none."""
    nodes: int = Field(1, ge=1)
    distribution: SerializeAsAny[Distribution] = Field(default_factory=Distribution.usually)
    """How the network is divided among several ranks."""
    device_tokens: int | None = Field(None, ge=1)
    """The most tokens that a device takes at a time; the rest of its share of a batch is accumulated."""
    checkpoint_every: int = Field(Runtime().checkpoint_every, ge=1)
    """Optimizer steps between two checkpoints to resume from."""
    accelerator: Literal["auto", "cpu", "gpu"] = "auto"
    """`auto` is what the flow's own machine has: say it where training runs on other machines."""

    def at_once(self, cores: int) -> int:
        """Jobs that may run side by side."""
        return self.launcher.at_once(cores, self.devices)

    def runtime(self, stage: Stage, threads: int) -> Runtime:
        """How a job of `stage` is computed when it has `threads` processors of the flow's machine. What does not train
        has one rank and all of them."""
        together = stage.trains
        return Runtime(
            accelerator=hardware.accelerator() if self.accelerator == "auto" else self.accelerator,
            threads=max(1, threads // self.devices) if together else threads,
            devices=self.devices if together else 1,
            nodes=self.nodes if together else 1,
            distribution=self.distribution,
            device_tokens=self.device_tokens,
            checkpoint_every=self.checkpoint_every,
        )


def load_training(root: Path) -> TrainingSettings:
    """The block `training:` of `root`/params.yaml. RecipeError when it says something impossible."""
    try:
        settings = TrainingSettings.model_validate(dict(read_params(root).get("training") or {}))
    except ValidationError as invalid:
        error = invalid.errors()[0]
        raise RecipeError(f"{FILE}: training.{'.'.join(map(str, error['loc']))}: {error['msg']}") from None
    return settings
