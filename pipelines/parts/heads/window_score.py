"""Word vectors by scores of windows, lower with another word in the centre (Collobert & Weston 2008)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field as Option

from pipelines.parts.heads import Batch, Head
from pipelines.vocabulary import Ability, Field, Signal

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

    from pipelines.task_families import Task

CENTER_TOKENS = Field.of_rows("center_tokens")
"""int64 [B, L]: 1 for a token that is a centre; N in all, in the order of `CENTERS`."""


class WindowScoreHead(Head, name="window_score"):
    """A hidden layer over the vectors of a window side by side, in the order of the words, and one score.

    The first score of a window is that of the text, the others are those of the window with a negative in its centre.
    Windows end with the row and the document; what is beyond them has a vector of its own. The layers are not kept
    after training.
    """

    paper = "arXiv:1103.0398"
    needs = frozenset({Field.INPUT_IDS, Field.DOCUMENTS, CENTER_TOKENS, Field.CENTERS, Field.NEGATIVES})
    provides = frozenset({Signal.NOISE_LOGITS})
    needs_abilities = frozenset({Ability.STATIC})

    window: int = Option(5, ge=1, le=100)
    """Words on each side of the centre."""
    hidden_size: int = Option(100, ge=1, le=100_000)
    """Width of the hidden layer, in elements."""

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        from pipelines.networks.window_scorer import WindowScorer
        from pipelines.networks.word_vectors import WordVectorsConfig

        assert isinstance(config, WordVectorsConfig)
        return WindowScorer(config, self.window, self.hidden_size)

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        scores = network(
            batch[Field.INPUT_IDS], batch[Field.DOCUMENTS], batch[CENTER_TOKENS], batch[Field.CENTERS],
            batch[Field.NEGATIVES],
        )  # fmt: skip
        return {Signal.NOISE_LOGITS: scores}
