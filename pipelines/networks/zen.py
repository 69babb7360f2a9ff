"""ZEN: an encoder of n-grams beside that of characters (Diao et al. 2019, arXiv:1911.00720, §2.1 and §2.2).

The n-grams of a row are those of the lexicon that its tokens, as they are read, consist of: one that a mask or another
token interrupts is none, so that none tells what is to be predicted. They have embeddings, no positions, and layers of
their own, in which they attend to each other. After each of these, what the layer says of an n-gram is added to the
states of all characters that it covers, before the next layer of characters:

    υ*_i = υ_i + Σ_k μ_k over the n-grams k that cover character i

Shapes: B rows of L tokens, G n-grams in a row at most, V_n in the lexicon.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

import torch
from torch import Tensor, nn
from transformers import AutoModel, BertConfig
from transformers.masking_utils import create_bidirectional_mask
from transformers.modeling_outputs import BaseModelOutput
from transformers.models.bert.modeling_bert import BertEmbeddings, BertLayer, BertPreTrainedModel

from pipelines.networks.attention_free import register_architecture


class ZenConfig(BertConfig):
    """Dimensions of BERT, those of the encoder of n-grams, and the lexicon."""

    model_type = "zen"

    num_ngram_layers: int = 6
    """Layers of the encoder of n-grams, beside the lowest of characters."""
    ngrams: list[list[int]] | None = None
    """The tokens of each n-gram, two or more."""


class Matches(NamedTuple):
    """The n-grams of the rows of a batch."""

    ids: Tensor
    """int64 [B, G]: row of each n-gram in the table of embeddings, 0 for padding."""
    covers: Tensor
    """bool [B, L, G]: whether an n-gram covers a token."""


class NgramMatcher(nn.Module):
    """Finds the n-grams of a lexicon in rows of tokens, all of them, also those within others."""

    table: Tensor
    """int64 [V_n, longest]: the tokens of each n-gram, −1 after the last; in ascending order of `digests`."""
    sizes: Tensor
    """int64 [V_n]: number of tokens."""
    digests: Tensor
    """int64 [V_n], ascending."""
    numbers: Tensor
    """int64 [V_n]: row in the table of embeddings, from 1, in the order of the lexicon."""

    def __init__(self, ngrams: list[list[int]]) -> None:
        super().__init__()
        self.lengths = sorted({len(one) for one in ngrams})
        """The different numbers of tokens."""
        longest = max(self.lengths, default=2)
        random = Random(0)
        self.factors = [random.randrange(-(2**62), 2**62) for _ in range(longest)]
        """Factors of the positions of an n-gram in its digest; no tensor: a network may be built without memory."""
        table = torch.full((len(ngrams), longest), -1)
        for at, one in enumerate(ngrams):
            table[at, : len(one)] = torch.tensor(one)
        sizes = torch.tensor([len(one) for one in ngrams], dtype=torch.long)
        digests = self._digest(table)
        order = digests.argsort()
        # saved with the weights, which are meaningless for any other lexicon
        self.register_buffer("table", table[order])
        self.register_buffer("sizes", sizes[order])
        self.register_buffer("digests", digests[order])
        self.register_buffer("numbers", order + 1)

    def forward(self, input_ids: Tensor) -> Matches:
        """The n-grams in `input_ids` [B, L]."""
        rows, length = input_ids.shape
        numbers, starts, ends = [], [], []
        for size in self.lengths:
            if size > length:
                continue
            windows = input_ids.unfold(1, size, 1)
            candidates = torch.searchsorted(self.digests, self._digest(windows)).clamp(max=len(self.digests) - 1)
            # digests may agree by chance
            same = (self.table[candidates][..., :size] == windows).all(-1) & (self.sizes[candidates] == size)
            numbers.append(torch.where(same, self.numbers[candidates], 0))
            begins = torch.arange(length - size + 1, device=input_ids.device)
            starts.append(begins)
            ends.append(begins + size)
        if not numbers:
            nothing = input_ids.new_zeros(rows, 1)
            return Matches(nothing, torch.zeros(rows, length, 1, dtype=torch.bool, device=input_ids.device))
        every, start, end = torch.cat(numbers, dim=1), torch.cat(starts), torch.cat(ends)
        count = max(1, int((every > 0).sum(1).max()))
        chosen = (every == 0).to(torch.int8).argsort(dim=1, stable=True)[:, :count]
        ids = every.take_along_dim(chosen, 1)
        tokens = torch.arange(length, device=input_ids.device)[None, :, None]
        covers = (start[chosen][:, None] <= tokens) & (tokens < end[chosen][:, None]) & (ids > 0)[:, None]
        return Matches(ids, covers)

    def _digest(self, tokens: Tensor) -> Tensor:
        """int64 [...] of `tokens` [..., n], of which −1 counts nothing."""
        result = torch.zeros(tokens.shape[:-1], dtype=torch.long, device=tokens.device)
        for at in range(tokens.shape[-1]):
            result = result + (tokens[..., at] + 1) * self.factors[at]
        return result


class ZenModel(BertPreTrainedModel):
    """The backbone."""

    config_class = ZenConfig
    base_model_prefix = "zen"

    def __init__(self, config: ZenConfig) -> None:
        super().__init__(config)
        ngrams = config.ngrams or []
        self.embeddings = BertEmbeddings(config)
        self.layers = nn.ModuleList(BertLayer(config, layer_idx=at) for at in range(config.num_hidden_layers))
        self.matcher = NgramMatcher(ngrams)
        # row 0 is no n-gram and covers nothing, so that it needs no padding index: it has no gradient anyway
        self.ngram_embeddings = nn.Embedding(1 + len(ngrams), config.hidden_size)
        self.ngram_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.ngram_dropout = nn.Dropout(config.hidden_dropout_prob)
        self.ngram_layers = nn.ModuleList(BertLayer(config, layer_idx=at) for at in range(config.num_ngram_layers))
        self.post_init()  # type: ignore[no-untyped-call]  # transformers does not type it

    def get_input_embeddings(self) -> nn.Module:
        return self.embeddings.word_embeddings

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.embeddings.word_embeddings = value  # type: ignore[assignment]  # transformers assigns any module

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        output_hidden_states: bool = False,
    ) -> BaseModelOutput:
        """Run on `input_ids` [B, L]; `hidden_states` are those of characters, with what n-grams have added."""
        states = self.embeddings(input_ids=input_ids, token_type_ids=token_type_ids, position_ids=position_ids)
        mask = create_bidirectional_mask(config=self.config, inputs_embeds=states, attention_mask=attention_mask)
        matches = self.matcher(input_ids)
        ngrams = self.ngram_dropout(self.ngram_norm(self.ngram_embeddings(matches.ids)))
        seen = (matches.ids > 0).long()
        # a row without any attends to padding, which covers nothing
        seen[:, 0] = 1
        ngram_mask = create_bidirectional_mask(config=self.config, inputs_embeds=ngrams, attention_mask=seen)
        hidden_states = [states]
        for at, layer in enumerate(self.layers):
            states = layer(states, mask)
            if at < len(self.ngram_layers):
                ngrams = self.ngram_layers[at](ngrams, ngram_mask)
                states = states + matches.covers.to(ngrams.dtype) @ ngrams
            hidden_states.append(states)
        return BaseModelOutput(
            last_hidden_state=states, hidden_states=tuple(hidden_states) if output_hidden_states else None
        )


def register_auto_classes() -> None:
    """Register this architecture with the Auto classes of transformers."""
    register_architecture(ZenConfig, {AutoModel: ZenModel})
