"""A language model's loss beside the task's, which fades in the course of the stage (Chronopoulou et al. 2019)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field as Option

from pipelines.parts.objectives import Batch, TrainingStep
from pipelines.parts.objectives.causal_lm import CausalLM

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel


class FadingLM(CausalLM, name="fading_lm"):
    """`causal_lm` times a factor that falls exponentially from 1 at the first step to `last` at the end of the stage.

    What was learned in pre-training is held on to while new layers are random, and let go as the task is learned.
    `weight` is the paper's γ at the first step. Term: `fading_lm`, in nats per token.
    """

    paper = "arXiv:1902.10547"

    last: float = Option(0.5, gt=0, le=1)
    """The factor at the end of the stage; 1: it does not fade. The authors' γ falls from 0.2 to 0.1."""

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        return {"fading_lm": super().loss(step)["causal_lm"] * self.last**step.progress}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {"fading_lm": super().counts(batch, network)["causal_lm"]}
