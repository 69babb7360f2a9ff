"""Sampled softmax: causal language modelling that scores a few words of the vocabulary (Bengio & Senécal 2003, "Quick
training of probabilistic neural nets by importance sampling", §3)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, cast

from pydantic import Field as Option

from pipelines.parts.objectives import Batch, TrainingStep
from pipelines.parts.objectives.causal_lm import CausalLM
from pipelines.vocabulary import Signal

if TYPE_CHECKING:
    from torch import Tensor, nn
    from transformers import PreTrainedModel


class SampledSoftmax(CausalLM, name="sampled_softmax"):
    """Cross-entropy of the next token, whose sum over the vocabulary is estimated from `samples` other tokens.

        Σ exp(s) ≈ exp(s of the target) + Σ over samples exp(s) / (samples · q)

    Samples are drawn once for the whole batch, with replacement. The token of rank r has q ∝ log(1 + 1 / r): Zipf's
    law, for a tokenizer that sorts its words by frequency. A sample that equals the target is left out, so that the
    estimate of the sum has no bias. Only training samples: perplexity is computed over the whole vocabulary. Term:
    `sampled_softmax`, in nats per token.
    """

    paper = "Bengio & Senécal 2003"
    needs_signals = frozenset({Signal.HIDDEN_STATES})

    samples: int = Option(1024, ge=1, le=1_000_000)
    """Tokens drawn for a batch, with replacement."""

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        import torch
        from torch.nn.functional import linear

        layer = cast("nn.Linear", step.network.get_output_embeddings())
        states = step.signals[Signal.HIDDEN_STATES][-1].flatten(0, -2)
        targets = self._targets(step.batch, step.network).flatten()
        counted = torch.nonzero(targets >= 0).squeeze(1)
        states, targets = states[counted], targets[counted]
        size = layer.weight.shape[0]
        drawn = torch.rand(self.samples, device=targets.device, dtype=torch.float64)
        # the inverse of the distribution function log(1 + id) / log(1 + V)
        samples = (torch.exp(drawn * math.log1p(size)) - 1).long().clamp(0, size - 1)
        expected = torch.log1p(1 / (samples.double() + 1)) * (self.samples / math.log1p(size))
        scores = linear(states, layer.weight[samples], None if layer.bias is None else layer.bias[samples]).float()
        scores = (scores - expected.log().float()).masked_fill(targets.unsqueeze(1) == samples, -torch.inf)
        true = (states * layer.weight[targets]).sum(-1).float()
        if layer.bias is not None:
            true = true + layer.bias[targets]
        loss = torch.logaddexp(true, scores.logsumexp(-1)) - true
        return {"sampled_softmax": loss.sum() / max(1, len(targets))}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {"sampled_softmax": int((self._targets(batch, network) >= 0).sum())}
