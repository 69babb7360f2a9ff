"""Word vectors learn the way to a window's middle word in a binary tree (Mikolov et al. 2013, arXiv:1301.3781, §3.1; the
tree as an output layer: Morin & Bengio 2005)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pipelines.errors import RecipeError
from pipelines.parts.heads import Batch, Head
from pipelines.vocabulary import Ability, Field, Signal

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

    from pipelines.task_families import Task


class PathPredictionHead(Head, name="path_prediction"):
    """A vector for each inner node of a Huffman tree scores the turn to take there. It is left behind when training ends.

    N predictions are made in a batch: one a window (CBOW), or one a neighbour (skip-gram).
    """

    paper = "arXiv:1301.3781"
    needs = frozenset({Field.CENTERS, Field.CONTEXTS})
    provides = frozenset({Signal.PATH_LOGITS, Signal.PATH_TURNS})
    needs_abilities = frozenset({Ability.STATIC})
    needs_tokens = frozenset({"counts"})

    architecture: Literal["skip_gram", "cbow"] = "skip_gram"
    """What the middle word is predicted from: each of its neighbours by itself, or their mean."""

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        from pipelines.networks.word_vectors import PathPredictor, WordVectorsConfig

        assert isinstance(config, WordVectorsConfig)
        if config.token_counts is None:
            raise RecipeError(
                "head path_prediction: its tree is made of word counts, which the tokenizer has not kept; use the "
                "tokenizer words, or the head noise_prediction"
            )
        config.word_architecture = self.architecture
        return PathPredictor(config, config.token_counts)

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        scores, turns = network(batch[Field.CENTERS], batch[Field.CONTEXTS])
        return {Signal.PATH_LOGITS: scores, Signal.PATH_TURNS: turns}
