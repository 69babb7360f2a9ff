"""Distillation of attention: the student's layers attend as selected layers of the teacher do (Jiao et al. 2019, eq. 7;
Sun et al. 2020, §3.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

from pipelines.networks.shape import NetworkShape
from pipelines.parts.objectives import Batch, Companion, Companions, Objective, TrainingStep
from pipelines.parts.objectives.real_tokens import real_tokens
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

HIDDEN = -1e9
"""Score of a token that is not seen: finite, so that no difference of two is undefined."""
LEAST = 1e-30
"""Probability below which its logarithm is not taken."""


class MatchAttention(Objective, name="match_attention"):
    """Difference between the attention of student and teacher, mean over layers, heads, and pairs of tokens that see
    each other.

    Student layer i of m matches teacher layer i · (teacher layers / m), the uniform map of TinyBERT §4.1. With
    `compare: scores` it is the mean squared error of the scores before the softmax (TinyBERT, eq. 7), with
    `distributions` the relative entropy KL(teacher ‖ student) of what each token attends to (MobileBERT §3.2).
    Different numbers of heads are refused unless `heads` is `mean`.
    """

    paper = "arXiv:1909.10351"
    may_read = frozenset({Field.INPUT_IDS, Field.ATTENTION_MASK, Field.VISIBLE, Field.DOCUMENT_STARTS})
    needs_signals = frozenset({Signal.ATTENTION_SCORES})
    needs_teacher = True

    compare: Literal["scores", "distributions"] = "scores"
    """What is compared: scores before the softmax, or the distributions after it."""
    heads: Literal["each", "mean"] = "each"
    """Whether each head matches the teacher's of the same number, or their mean that of the teacher's heads."""

    def companions(self, make: Companions) -> dict[str, Companion]:
        return {"teacher": make.teacher()}

    def unfit(self, student: NetworkShape, teacher: NetworkShape) -> str | None:
        if self.heads == "mean" or None in (student.heads, teacher.heads) or student.heads == teacher.heads:
            return None
        return (
            f"the student has {student.heads} attention heads and its teacher {teacher.heads}, so that none "
            "corresponds to another; set heads: mean, or give the backbone as many"
        )

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        import torch

        student = cast("tuple[Tensor, ...]", step.signals[Signal.ATTENTION_SCORES])
        teacher = cast("tuple[Tensor, ...]", step.companion_signals("teacher")[Signal.ATTENTION_SCORES])
        stride = len(teacher) / len(student)
        seen = seen_pairs(step.batch).unsqueeze(1)
        terms = [
            self.difference(own.float(), teacher[round((layer + 1) * stride) - 1].float(), seen)
            for layer, own in enumerate(student)
        ]
        return {"match_attention": torch.stack(terms).mean()}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        seen = seen_pairs(batch)
        return {"match_attention": int((seen.any(-1) if self.compare == "distributions" else seen).sum())}

    def difference(self, student: Tensor, teacher: Tensor, seen: Tensor) -> Tensor:
        """Difference of the scores [B, heads, L, L] of two layers over the pairs `seen` [B, 1, L, L]."""
        mean = self.heads == "mean"
        if self.compare == "distributions":
            own, other = (_distributions(one.masked_fill(~seen, HIDDEN), mean) for one in (student, teacher))
            entropy, queries = (other.exp() * (other - own)).sum(-1), seen.any(-1)
            return entropy.masked_fill(~queries, 0).sum() / (queries.sum() * own.shape[1])
        own, other = (one.mean(1, keepdim=True) if mean else one for one in (student, teacher))
        return (own - other).square().masked_fill(~seen, 0).sum() / (seen.sum() * own.shape[1])


def _distributions(scores: Tensor, mean: bool) -> Tensor:
    """Logarithms of what each token attends to [B, heads, L, L]; of the `mean` over heads, [B, 1, L, L]."""
    if not mean:
        return scores.log_softmax(-1)
    return scores.softmax(-1).mean(1, keepdim=True).clamp_min(LEAST).log()


def seen_pairs(batch: Batch) -> Tensor:
    """bool [B, L, L]: whether token i attends to token j, neither of which is padding."""
    real = real_tokens(batch).bool()
    pairs = real.unsqueeze(2) & real.unsqueeze(1)
    if Field.VISIBLE in batch:
        pairs = pairs & batch[Field.VISIBLE]
    elif Field.DOCUMENT_STARTS in batch:
        document = batch[Field.DOCUMENT_STARTS].cumsum(1)
        pairs = pairs & (document.unsqueeze(2) == document.unsqueeze(1))
    return pairs
