"""Tagging with a linear-chain conditional random field."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

from pipelines.parts.heads import Batch, Signals
from pipelines.parts.heads.layer_signals import LAYERS
from pipelines.parts.heads.word_tags import WordTaggingHead
from pipelines.task_families.tagging import OUTSIDE, is_valid_transition
from pipelines.vocabulary import Signal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor
    from transformers import PreTrainedModel

FORBIDDEN = -10_000.0
"""Score of a forbidden transition: finite, so that a gold sequence with one still has a gradient."""


class CrfTaggingHead(WordTaggingHead, name="crf_tagging"):
    """A tag for every word, from the best sequence of a conditional random field (Lample et al. 2016, §2.2).

    Words are represented by their first tokens; words beyond the length of a row are tagged `O`.
    """

    paper = "arXiv:1603.01360"
    provides = LAYERS | {Signal.TAG_LOGITS, Signal.TAG_TRANSITIONS}
    answers_from: ClassVar[frozenset[Signal]] = frozenset({Signal.TAG_LOGITS, Signal.TAG_TRANSITIONS})
    transitions: ClassVar[bool] = True

    legal_only: bool = False
    """Whether transitions that IOB2 forbids are excluded, in training and in prediction, instead of learnt."""

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        transitions: Tensor = network.transitions  # type: ignore[assignment]  # every network of this head has it
        if self.legal_only:
            names = cast("dict[int, str]", network.config.id2label)
            forbidden = transitions.new_tensor(_forbidden([names[index] for index in range(len(names))])).bool()
            transitions = transitions.masked_fill(forbidden, FORBIDDEN)
        return super().signals(network, batch, requested) | {Signal.TAG_TRANSITIONS: transitions}

    def _tags(self, signals: Signals, first_tokens: Sequence[NDArray[np.int64]]) -> list[list[int]]:
        import torch
        from torch.nn.utils.rnn import pad_sequence

        from pipelines.networks.crf import best_chains

        scores: Tensor = signals[Signal.TAG_LOGITS].float()
        tokens = [torch.from_numpy(words[:, 1]).to(scores.device) for words in first_tokens]
        emissions = pad_sequence([row[token] for row, token in zip(scores, tokens, strict=True)], batch_first=True)
        lengths = torch.tensor([len(token) for token in tokens], device=scores.device)
        if emissions.shape[1] == 0:
            return [[] for _ in first_tokens]
        return best_chains(emissions, signals[Signal.TAG_TRANSITIONS].float(), lengths)


def _forbidden(tags: Sequence[str]) -> list[list[bool]]:
    """[C + 2, C + 2]: True where IOB2 does not allow the second tag after the first; the start counts as `O`."""
    before = [*tags, OUTSIDE, OUTSIDE]
    return [[*(not is_valid_transition(one, tag) for tag in tags), False, False] for one in before]
