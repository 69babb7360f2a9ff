"""Dependency parsing: the head of every word, and the relation to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pipelines.parts.objectives import Batch, Objective, TrainingStep
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

HEAD_WORDS = Field.of_rows("head_words")
"""int64 [B, W]: head of each word: 0 for the root, 1 for the first word; −100 for none."""
HEAD_RELATIONS = Field.of_rows("head_relations")
"""int64 [B, W]: relation of each word to its head; −100 for none."""
ARC_LOGITS = Signal.of_head("arc_logits")
"""[B, W, W + 1]: scores of the heads of each word, the root first; −inf for what can be none."""
RELATION_LOGITS = Signal.of_head("relation_logits")
"""[B, W, W + 1, C]: scores of the relations of each word to each head."""


class BiaffineParser(Objective, name="biaffine_parser"):
    """Cross-entropy of the correct head of every word, and of its relation to the correct head (Dozat & Manning 2017,
    §2.2).

    In nats: each the mean over the words of the batch that have one.
    """

    paper = "arXiv:1611.01734"
    needs_fields = frozenset({HEAD_WORDS, HEAD_RELATIONS})
    needs_signals = frozenset({ARC_LOGITS, RELATION_LOGITS})

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        from torch.nn.functional import cross_entropy

        arcs = cast("Tensor", step.signals[ARC_LOGITS])
        scores = cast("Tensor", step.signals[RELATION_LOGITS])
        heads, relations = (cast("Tensor", step.batch[field]) for field in (HEAD_WORDS, HEAD_RELATIONS))
        has_head, has_relation = heads >= 0, relations >= 0
        arc_loss = cross_entropy(arcs[has_head].float(), heads[has_head], reduction="sum")
        chosen = scores[has_relation].take_along_dim(heads[has_relation][:, None, None], 1).squeeze(1)
        relation_loss = cross_entropy(chosen.float(), relations[has_relation], reduction="sum")
        # a batch without labelled words has loss 0, not 0 / 0
        return {
            "arcs": arc_loss / has_head.sum().clamp(min=1),
            "relations": relation_loss / has_relation.sum().clamp(min=1),
        }

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {"arcs": int((batch[HEAD_WORDS] >= 0).sum()), "relations": int((batch[HEAD_RELATIONS] >= 0).sum())}
