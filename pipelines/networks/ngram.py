"""N-gram language model: tables of log-probabilities and back-off weights (Katz 1987; Chen & Goodman 1999).

    token ids ─▶ states: the longest seen histories, as indices of tables ─▶ log-probabilities of the next token

Nothing here is learned by gradient: an estimate fills the tables. The key of an n-gram is (index of its first n − 1
tokens in the table below) · V + (its last token); keys are sorted. Shapes: B rows, L tokens, V vocabulary, O the order,
n the n-grams of a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn
from transformers import AutoModel, AutoModelForCausalLM, PretrainedConfig
from transformers.modeling_outputs import BaseModelOutput, CausalLMOutput

from pipelines.networks.attention_free import AttentionFreeModel, register_architecture

IN_ORDER = 2**14
"""Number of keys from which they are sorted before they are searched."""


class NgramConfig(PretrainedConfig):
    """Dimensions of an n-gram model."""

    model_type = "ngram"

    vocab_size: int = 10000
    order: int = 3
    """Tokens of the longest n-gram."""
    ngrams: list[int] | None = None
    """Number of n-grams of each order, unigrams first; None before they are counted."""
    discounts: list[list[float]] | None = None
    """By order: what was subtracted from the counts 1, 2, and 3 or more, for the record."""
    pad_token_id: int | None = 0
    tie_word_embeddings: bool = False

    @property
    def hidden_size(self) -> int:
        """Width of a state."""
        return self.order - 1


class NgramPreTrainedModel(AttentionFreeModel):
    """Base class of the tables and the language model: configuration and names."""

    config_class = NgramConfig
    base_model_prefix = "ngram"

    def _init_weights(self, module: nn.Module) -> None:
        """Tables are counted, not initialised."""


class NgramLevel(nn.Module):
    """The n-grams of one order."""

    keys: Tensor
    """int64 [n], ascending; none for unigrams, whose index is the token."""
    log_probs: nn.Parameter
    """float32 [n]: log-probability of the last token after the others."""
    backoffs: nn.Parameter
    """float32 [n]: what is added to the log-probabilities after a shorter history if the n-gram is a history of an
    unseen continuation; none for the highest order."""

    def __init__(self, size: int, lowest: bool, highest: bool) -> None:
        super().__init__()
        if not lowest:
            self.register_buffer("keys", torch.zeros(size, dtype=torch.int64))
        # parameters without a gradient: transformers reads a network's dtype off its parameters
        self.log_probs = nn.Parameter(torch.zeros(size), requires_grad=False)
        if not highest:
            self.backoffs = nn.Parameter(torch.zeros(size), requires_grad=False)

    def find(self, keys: Tensor) -> Tensor:
        """Indices of `keys`; −1 where there is none, as for negative keys."""
        if not len(self.keys):
            return torch.full_like(keys, -1)
        if keys.numel() < IN_ORDER:
            index = torch.searchsorted(self.keys, keys).clamp(max=len(self.keys) - 1)
            return torch.where(self.keys[index] == keys, index, -1)
        # neighbouring keys are searched along the same path, which is in the processor's cache
        ascending, order = keys.flatten().sort()
        index = torch.searchsorted(self.keys, ascending).clamp(max=len(self.keys) - 1)
        result = torch.empty_like(index)
        result[order] = torch.where(self.keys[index] == ascending, index, -1)
        return result.view_as(keys)


class NgramModel(NgramPreTrainedModel):
    """The tables, and the state of a history in them."""

    def __init__(self, config: NgramConfig) -> None:
        super().__init__(config)
        sizes = config.ngrams or [config.vocab_size, *[0] * (config.order - 1)]
        self.tables = nn.ModuleList(
            NgramLevel(size, number == 0, number == config.order - 1) for number, size in enumerate(sizes)
        )
        self.post_init()  # type: ignore[no-untyped-call]  # transformers does not type it

    @property
    def levels(self) -> list[NgramLevel]:
        """Tables by order, unigrams first."""
        return cast("list[NgramLevel]", list(self.tables))

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, output_hidden_states: bool = False
    ) -> BaseModelOutput:
        """States int64 [B, L, O − 1] of `input_ids` [B, L]: the index of the k-gram that ends at each token, for k
        from 1 to O − 1; −1 for one that the text did not contain, or that would begin before the row.

        Padding on the right does not affect the tokens before it.
        """
        states = self._indices(input_ids, self.config.order - 1)
        empty = input_ids.new_empty((*input_ids.shape, 0))
        return BaseModelOutput(last_hidden_state=torch.stack(states, -1) if states else empty)

    def _indices(self, input_ids: Tensor, orders: int) -> list[Tensor]:
        """For k from 1 to `orders`, int64 [B, L]: index of the k-gram that ends at each token, or −1."""
        indices = [input_ids] if orders else []
        for level in self.levels[1:orders]:
            before = _shifted(indices[-1])
            indices.append(level.find(torch.where(before >= 0, before * self.config.vocab_size + input_ids, -1)))
        return indices

    def token_log_probs(self, input_ids: Tensor) -> Tensor:
        """float32 [B, L]: log-probability of each of `input_ids` [B, L] after those before it in its row.

        The probabilities of `next_log_probs`, of these tokens alone: a search for each order instead of the
        distribution over the vocabulary.
        """
        indices = self._indices(input_ids, self.config.order)
        result = self.levels[0].log_probs[input_ids]
        for below, level, shorter, index in zip(self.levels, self.levels[1:], indices, indices[1:], strict=False):
            context = _shifted(shorter)
            backed_off = result + torch.where(context >= 0, below.backoffs[context.clamp(min=0)], 0)
            result = (
                torch.where(index >= 0, level.log_probs[index.clamp(min=0)], backed_off)
                if len(level.keys)
                else backed_off
            )
        return result

    def next_log_probs(self, states: Tensor) -> Tensor:
        """float32 [..., V]: log-probability of each token after `states` [..., O - 1]."""
        lowest, *higher = self.levels
        flat = states.flatten(0, -2)
        result = lowest.log_probs.repeat(len(flat), 1)
        for below, level, history in zip(self.levels, higher, flat.unbind(-1), strict=False):
            seen = torch.nonzero(history >= 0).squeeze(1)
            contexts = history[seen]
            result[seen] += below.backoffs[contexts].unsqueeze(1)
            ends = torch.stack([contexts, contexts + 1]) * self.config.vocab_size
            begin, end = torch.searchsorted(level.keys, ends)
            # the continuations of a context are neighbours in the table
            count = end - begin
            rows = torch.repeat_interleave(seen, count)
            index = torch.arange(len(rows), device=rows.device)
            index += torch.repeat_interleave(begin - (torch.cumsum(count, 0) - count), count)
            result[rows, level.keys[index] % self.config.vocab_size] = level.log_probs[index]
        return result.reshape(*states.shape[:-1], -1)


def _shifted(indices: Tensor) -> Tensor:
    """`indices` [B, L] of the tokens before, −1 before the first of a row."""
    return torch.cat([torch.full_like(indices[:, :1], -1), indices[:, :-1]], 1)


class NextTokenTables(nn.Module):
    """The tables as the layer that scores the vocabulary; it has no weights of its own."""

    def __init__(self, model: NgramModel) -> None:
        super().__init__()
        self._model: Sequence[NgramModel] = (model,)  # in a tuple, since a submodule would be saved twice

    def forward(self, states: Tensor) -> Tensor:
        return self._model[0].next_log_probs(states)


class NgramForCausalLM(NgramPreTrainedModel):
    """The tables as a language model, whose logits are log-probabilities."""

    def __init__(self, config: NgramConfig) -> None:
        super().__init__(config)
        self.ngram = NgramModel(config)
        self.post_init()  # type: ignore[no-untyped-call]  # transformers does not type it

    def get_output_embeddings(self) -> nn.Module:
        return NextTokenTables(self.ngram)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> CausalLMOutput:
        """Log-probabilities [B, L, V] of the token after each of `input_ids` [B, L]."""
        return CausalLMOutput(logits=self.get_output_embeddings()(self.ngram(input_ids).last_hidden_state))


def register_auto_classes() -> None:
    """Register this architecture with the Auto classes of transformers."""
    register_architecture(NgramConfig, {AutoModel: NgramModel, AutoModelForCausalLM: NgramForCausalLM})
