"""Beam search with a length penalty for the heads whose networks write by transformers' own `generate`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field as Option

from pipelines.parts.heads.text_to_text import TextToTextHead

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

    from pipelines.task_families import Task


class BeamedTextHead(TextToTextHead):
    """Text to text by beam search.

    The network's configuration of generation has both options, so that plain transformers writes a saved folder alike.
    """

    beams: int = Option(4, ge=2)
    """Number of beams."""
    length_penalty: float = Option(1.0, ge=-10, le=10)
    """α: texts of n tokens are compared by Σ log p / n^α, as transformers' `generate` does (Wu et al. 2016,
    arXiv:1609.08144, eq. 14, divide by ((5 + n) / 6)^α); 0 compares likelihoods, larger ones prefer longer texts."""

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        network = super().build(config, task)
        assert network.generation_config is not None  # heads refuse networks that do not generate
        network.generation_config.num_beams = self.beams
        network.generation_config.length_penalty = self.length_penalty
        return network
