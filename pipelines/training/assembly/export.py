"""What a stage leaves behind: one whole network with its best weights, as a Hugging Face folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.models.opening import Record, put_together
from pipelines.parts.distributions import Distribution
from pipelines.training.checkpoints.folder import Checkpoints
from pipelines.training.ranks import process_group as group

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

    from pipelines.training.checkpoints.best_weights import BestWeights


def finished(
    network: PreTrainedModel, best: BestWeights | None, distribution: Distribution, checkpoints: Checkpoints
) -> PreTrainedModel:
    """The whole network on the first rank, with its best weights where some were better than the last."""
    last = distribution.whole(network) if distribution.divides else None
    if group.rank() > 0:
        return network
    weights = last if best is None else best.read(checkpoints)
    if last is not None:
        record = Record.read(network.config)
        assert record is not None
        network = put_together(record, network.config)
    if weights is not None:
        network.load_state_dict(weights)
    return network


def export(network: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, length: int, out: Path) -> None:
    """Write a Hugging Face folder. Weights are safetensors; the tokenizer cuts at the length that was trained on."""
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    network.eval()
    network.config._attn_implementation = None
    tokenizer.model_max_length = length
    network.save_pretrained(out)
    tokenizer.save_pretrained(out)
