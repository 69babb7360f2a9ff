"""Replaced token detection: discriminate the tokens of a small generator from the original ones (Clark et al. 2020,
§3.1)."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

from pydantic import Field as Option

from pipelines.parts.architectures import Architecture
from pipelines.parts.objectives import Batch, Companion, Companions, Objective, TrainingStep
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PretrainedConfig, PreTrainedModel

GENERATOR = "generator"


class ReplacedTokenDetection(Objective, name="replaced_token_detection"):
    """A generator replaces masked tokens by samples; the network predicts for every token whether it was replaced.

    The generator trains too. Terms: the generator's masked-LM loss, mean over masked positions, and `discriminator`
    times the binary cross-entropy of the network, mean over all tokens. No gradient passes through the sampling. The
    generator has the network's architecture and depth at a share of its widths, and shares its embeddings (§3.2); later
    stages start from the network alone.
    """

    paper = "arXiv:2003.10555"
    needs_fields = frozenset({Field.MASKED_POSITIONS, Field.MASKED_LABELS})
    may_read = frozenset({Field.INPUT_IDS, Field.ATTENTION_MASK, Field.REPLACED})
    needs_signals = frozenset({Signal.REPLACED_LOGITS})
    companion_heads = frozenset({"masked_lm"})

    generator_size: float = Option(0.25, gt=0, le=1)
    """Ratio of the generator's hidden size, feed-forward size and number of heads to the network's (§3.2, appendix
    A)."""
    discriminator: float = Option(50.0, gt=0)
    """λ: factor of the network's term; that of the generator's is 1 (§3.1)."""

    def companions(self, make: Companions) -> dict[str, Companion]:
        """The generator. Raises RecipeError when one of that size cannot be built."""
        companion = make.trained(GENERATOR, "masked_lm", self._smaller(make.network.config))
        _share_embeddings(make.network, companion.network)
        return {GENERATOR: companion}

    def rewrite(self, step: TrainingStep) -> Batch:
        import torch

        logits: Tensor = step.companion_signals(GENERATOR, frozenset({Signal.MASKED_LOGITS}))[Signal.MASKED_LOGITS]
        step.notes[self.name] = logits
        sampled = _sample(logits.detach())
        positions, ids = step.batch[Field.MASKED_POSITIONS], step.batch[Field.INPUT_IDS]
        filled, replaced = ids.flatten().clone(), torch.zeros_like(ids).flatten()
        filled[positions] = sampled
        # a token that the generator predicts correctly counts as original
        replaced[positions] = (sampled != step.batch[Field.MASKED_LABELS]).to(replaced.dtype)
        return {**step.batch, Field.INPUT_IDS: filled.view_as(ids), Field.REPLACED: replaced.view_as(ids)}

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        from torch.nn.functional import binary_cross_entropy_with_logits

        from pipelines.networks.vocabulary_loss import vocabulary_cross_entropy

        logits: Tensor = step.notes[self.name]
        scores: Tensor = step.signals[Signal.REPLACED_LOGITS]
        replaced, mask = step.batch[Field.REPLACED], step.batch.get(Field.ATTENTION_MASK)
        each = binary_cross_entropy_with_logits(scores.float(), replaced.float(), reduction="none")
        mean = each.mean() if mask is None else (each * mask).sum() / mask.sum()
        return {
            # tokens have been sampled already, and nothing else reads the generator's logits
            GENERATOR: vocabulary_cross_entropy(logits, step.batch[Field.MASKED_LABELS], inplace=True),
            self.name: self.discriminator * mean,
        }

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        mask = batch.get(Field.ATTENTION_MASK)
        tokens = batch[Field.INPUT_IDS].numel() if mask is None else int(mask.sum())
        return {GENERATOR: len(batch[Field.MASKED_LABELS]), self.name: tokens}

    def _smaller(self, config: PretrainedConfig) -> PretrainedConfig:
        """Configuration of the generator: smaller widths, the same depth and embedding size."""
        small = deepcopy(config)
        small.num_attention_heads = max(1, round(config.num_attention_heads * self.generator_size))
        per_head = max(1, round(config.hidden_size * self.generator_size / small.num_attention_heads))
        small.hidden_size = per_head * small.num_attention_heads
        small.intermediate_size = max(1, round(config.intermediate_size * self.generator_size))
        return small


def _share_embeddings(network: PreTrainedModel, generator: PreTrainedModel) -> None:
    architecture = Architecture.of(network.config)
    for path in architecture.embedding_tables if architecture is not None else ():
        target, source = (one.base_model.get_submodule(path) for one in (generator, network))
        target.weight = source.weight
    generator.tie_weights()


def _sample(logits: Tensor) -> Tensor:
    """int64 [M]: one token for each row of `logits` [M, V], sampled from its softmax with one draw of the global
    generator."""
    import torch

    cumulative = torch.softmax(logits.float(), dim=-1).cumsum(-1)
    # sums differ from one by rounding
    drawn = torch.rand(len(logits), 1, device=logits.device) * cumulative[:, -1:]
    return torch.searchsorted(cumulative, drawn, right=True).squeeze(1).clamp(max=logits.shape[-1] - 1)
