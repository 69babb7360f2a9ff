"""Where and on how many devices training runs: the block `training:` of params.yaml. None of it changes a
fingerprint."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SerializeAsAny

from pipelines.corpora.settings.blocks import read_block
from pipelines.lineage import hardware
from pipelines.parts.distributions import Distribution
from pipelines.recipe.job import Runtime
from pipelines.recipe.schema import Stage
from tasks.launchers import Launcher


class TrainingSettings(BaseModel):
    """The block `training:` of params.yaml."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    launcher: SerializeAsAny[Launcher] = Field(default_factory=Launcher.default)
    devices: int = Field(1, ge=1, le=1024)
    """Ranks on each node: GPUs, or processes without GPUs."""
    nodes: int = Field(1, ge=1, le=65_536)
    distribution: SerializeAsAny[Distribution] = Field(default_factory=Distribution.default)
    """How the network is distributed over several ranks."""
    device_tokens: int | None = Field(None, ge=1, le=10**12)
    """Most tokens in one forward pass of a device; gradients of the rest of its share of a batch are accumulated."""
    checkpoint_every: int = Field(Runtime().checkpoint_every, ge=1, le=10**12)
    """Optimizer steps between two checkpoints to resume from."""
    accelerator: Literal["auto", "cpu", "gpu"] = "auto"
    """`auto` detects the flow's own machine; set it explicitly where training runs on other machines."""

    def concurrent_jobs(self, cores: int) -> int:
        """Maximum number of concurrent jobs."""
        return self.launcher.concurrent_jobs(cores, self.devices)

    def runtime(self, stage: Stage, threads: int) -> Runtime:
        """The runtime of a job of `stage` on `threads` processors of the flow's machine. A stage that does not train
        runs on one rank with all of them."""
        return Runtime(
            accelerator=hardware.accelerator() if self.accelerator == "auto" else self.accelerator,
            threads=max(1, threads // self.devices) if stage.trains else threads,
            devices=self.devices if stage.trains else 1,
            nodes=self.nodes if stage.trains else 1,
            distribution=self.distribution,
            device_tokens=self.device_tokens,
            checkpoint_every=self.checkpoint_every,
        )


def load_training(root: Path) -> TrainingSettings:
    """Read the block `training:` of `root`/params.yaml. Raises RecipeError for an invalid setting."""
    return read_block(root, "training", TrainingSettings)
