"""The response to a dialogue among those of the batch (Wu et al. 2020, TOD-BERT §3.3; Henderson et al. 2019)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

from pipelines.parts.objectives import Batch, Objective, TrainingStep
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel


class ResponseSelection(Objective, name="response_selection"):
    """Mean over the contexts of −log softmax(c · r)[own response], over the responses of the whole batch.

    Both are read by the same network; the vector of a row is the top state of its first token. Inner products, as in
    the paper: what a wrong response is, the other contexts of the batch say. Zero when no row has a partner. Term:
    `response_selection`, in nats per context.
    """

    paper = "arXiv:2004.06871"
    needs_fields = frozenset({Field.PARTNER})
    compares_rows = True

    pooling: Literal["cls", "mean"] = "cls"
    """The vector of a row: the top hidden state of its first token, or the mean over its tokens."""

    @property
    def required_signals(self) -> frozenset[Signal]:
        return frozenset({Signal.HIDDEN_STATES if self.pooling == "cls" else Signal.POOLED})

    needs_signals = frozenset({Signal.HIDDEN_STATES})

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        import torch
        from torch.nn.functional import cross_entropy

        if self.pooling == "cls":
            vectors = cast("Tensor", step.signals[Signal.HIDDEN_STATES][-1])[:, 0].float()
        else:
            vectors = cast("Tensor", step.signals[Signal.POOLED]).float()
        partner = step.batch[Field.PARTNER]
        own = torch.nonzero(partner[: len(partner) // 2] >= 0).squeeze(1)
        contexts, responses = step.all_gather(vectors[own]), step.all_gather(vectors[partner[own]])
        if not len(contexts):
            return {"response_selection": vectors.sum() * 0}
        target = torch.arange(len(contexts), device=vectors.device)
        return {"response_selection": cross_entropy(contexts @ responses.T, target)}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {"response_selection": 1}
