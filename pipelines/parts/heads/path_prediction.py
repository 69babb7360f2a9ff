"""Word vectors by hierarchical softmax: predict the path to a window's centre in a binary tree (Mikolov et al. 2013,
arXiv:1301.3781, §3.1; trees as output layers: Morin & Bengio 2005)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pipelines.errors import RecipeError
from pipelines.parts.heads import Batch, Head
from pipelines.vocabulary import Ability, Field, Signal

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

    from pipelines.task_families import Task


class PathPredictionHead(Head, name="path_prediction"):
    """An output vector for each inner node of a Huffman tree scores the turn at that node.

    Output vectors are not kept after training. Predictions: one for each window (CBOW), or one for each context word
    (skip-gram).
    """

    paper = "arXiv:1301.3781"
    needs = frozenset({Field.CENTERS, Field.CONTEXTS})
    provides = frozenset({Signal.PATH_LOGITS, Signal.PATH_TURNS})
    needs_abilities = frozenset({Ability.STATIC})
    needs_tokens = frozenset({"counts"})

    architecture: Literal["skip_gram", "cbow"] = "skip_gram"
    """Input of a prediction of the centre word: each context word by itself, or the mean of all."""

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        from pipelines.networks.word_vectors import PathPredictor, WordVectorsConfig

        assert isinstance(config, WordVectorsConfig)
        if config.token_counts is None:
            raise RecipeError(
                "head path_prediction: its tree is built from word counts, which this tokenizer does not keep; use the "
                "tokenizer words, or the head noise_prediction"
            )
        config.word_architecture = self.architecture
        return PathPredictor(config, config.token_counts)

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        scores, turns = network(batch[Field.CENTERS], batch[Field.CONTEXTS])
        return {Signal.PATH_LOGITS: scores, Signal.PATH_TURNS: turns}
