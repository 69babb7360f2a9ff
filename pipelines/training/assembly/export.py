"""Export of a trained stage: one whole network with its best weights, as a Hugging Face folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.models.opening import HeadRecord, ModelRecord, build_network
from pipelines.parts.distributions import Distribution
from pipelines.training.checkpoints.folder import Checkpoints
from pipelines.training.ranks import process_group

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

    from pipelines.training.checkpoints.best_weights import BestWeights


def final_network(
    network: PreTrainedModel, best: BestWeights | None, distribution: Distribution, checkpoints: Checkpoints
) -> PreTrainedModel:
    """The whole network on rank 0, with the best weights of the validations, or the last ones where none counts."""
    last = distribution.full_state_dict(network) if distribution.shards_weights else None
    if process_group.rank() > 0:
        return network
    weights = last if best is None or best.score is None else best.read(checkpoints)
    if last is not None:
        record = ModelRecord.read(network.config)
        assert record is not None
        network = build_network(record, network.config)
    if weights is not None:
        network.load_state_dict(weights)
    return network


def export(network: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, length: int, out: Path) -> None:
    """Write a Hugging Face folder, with the files of injected knowledge.

    Weights are safetensors; the tokenizer truncates at the training length.
    """
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    network.eval()
    network.config._attn_implementation = None
    tokenizer.model_max_length = length
    record = ModelRecord.read(network.config)
    if record is not None:
        out.mkdir(parents=True, exist_ok=True)
        record.for_lines(lambda one: _saved(one, out)).write(network.config)
    network.save_pretrained(out)
    tokenizer.save_pretrained(out)


def _saved(record: HeadRecord, folder: Path) -> dict[str, Any]:
    return {"knowledge": None if record.knowledge is None else record.knowledge.save(folder)}
