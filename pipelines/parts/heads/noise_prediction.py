"""Word vectors by negative sampling: discriminate a window's centre from noise (Mikolov et al. 2013, arXiv:1310.4546,
§2.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pipelines.parts.heads import Batch, Head
from pipelines.vocabulary import Ability, Field, Signal

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

    from pipelines.task_families import Task


class NoisePredictionHead(Head, name="noise_prediction"):
    """A table of output vectors scores the centre word and the negatives. It is not kept after training.

    Predictions: one for each window (CBOW), or one for each context word (skip-gram).
    """

    paper = "arXiv:1310.4546"
    needs = frozenset({Field.CENTERS, Field.CONTEXTS, Field.NEGATIVES})
    provides = frozenset({Signal.NOISE_LOGITS})
    needs_abilities = frozenset({Ability.STATIC})

    architecture: Literal["skip_gram", "cbow"] = "skip_gram"
    """Input of a prediction of the centre word: each context word by itself, or the mean of all."""

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        from pipelines.networks.word_vectors import NoisePredictor, WordVectorsConfig

        assert isinstance(config, WordVectorsConfig)
        config.word_architecture = self.architecture
        return NoisePredictor(config)

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        scores = network(batch[Field.CENTERS], batch[Field.CONTEXTS], batch[Field.NEGATIVES])
        return {Signal.NOISE_LOGITS: scores}
