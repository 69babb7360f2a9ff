"""Word vectors learn to tell a window's middle word from noise (Mikolov et al. 2013, arXiv:1310.4546, §2.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pipelines.parts.heads import Batch, Head
from pipelines.vocabulary import Ability, Field, Signal

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

    from pipelines.task_families import Task


class NoisePredictionHead(Head, name="noise_prediction"):
    """A second table scores the middle word and the negatives. It is left behind when training ends.

    N predictions are made in a batch: one a window (CBOW), or one a neighbour (skip-gram).
    """

    paper = "arXiv:1310.4546"
    needs = frozenset({Field.CENTERS, Field.CONTEXTS, Field.NEGATIVES})
    provides = frozenset({Signal.NOISE_LOGITS})
    needs_abilities = frozenset({Ability.STATIC})

    architecture: Literal["skip_gram", "cbow"] = "skip_gram"
    """What the middle word is predicted from: each of its neighbours by itself, or their mean."""

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        from pipelines.networks.word_vectors import NoisePredictor, WordVectorsConfig

        assert isinstance(config, WordVectorsConfig)
        config.word_architecture = self.architecture
        return NoisePredictor(config)

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        scores = network(batch[Field.CENTERS], batch[Field.CONTEXTS], batch[Field.NEGATIVES])
        return {Signal.NOISE_LOGITS: scores}
