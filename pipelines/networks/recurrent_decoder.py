"""A recurrent decoder above any encoder (Sutskever et al. 2014; Kiros et al. 2015, §2.1; Luong et al. 2015, §3.1).

    source ─▶ encoder ─▶ states ─▶ pooling ─▶ v
    <pad> y₁ … ─▶ words ─▶ LSTM or GRU ─▶ scores of y₁ y₂ …
                             ▲ v beside every word, or attention to all states

Shapes: B rows, S tokens of a source, T of a target, H the width of the encoder's states, D that of the decoder, V the
vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import PretrainedConfig

from pipelines.networks.backbone_with_head import BackboneWithHead, dropout_of, linear
from pipelines.networks.siamese import pool_text

CELLS: dict[str, Callable[..., nn.RNNBase]] = {"gru": nn.GRU, "lstm": nn.LSTM}


class RecurrentDecoder(BackboneWithHead):
    """encoder → one recurrent layer over the target → linear.

    Configuration keys: `decoder_cell` (`gru` or `lstm`), `decoder_size` (D), `decoder_reads` (`vector` or `attention`)
    and `decoder_pooling` (`siamese.pool_text`). Words of the target have the encoder's own embeddings, or a table of
    the decoder's where the encoder has none for each token.
    """

    def __init__(self, config: PretrainedConfig) -> None:
        super().__init__(config)
        table = word_table(self.base_model, config.vocab_size)
        self.words = nn.Embedding(config.vocab_size, config.hidden_size) if table is None else None
        width = config.hidden_size if table is None else table.embedding_dim
        hidden, size = config.hidden_size, config.decoder_size
        self.attends = config.decoder_reads == "attention"
        self.decoder = CELLS[config.decoder_cell](width if self.attends else width + hidden, size, batch_first=True)
        if self.attends:
            self.first, self.query = linear(hidden, size, config), linear(size, hidden, config)
            self.combined = linear(hidden + size, size, config)
        self.dropout = nn.Dropout(dropout_of(config))
        self.output = linear(size, config.vocab_size, config)

    def forward(
        self, input_ids: Tensor, target_ids: Tensor, attention_mask: Tensor | None = None, **others: Tensor
    ) -> Tensor:
        """[B, T, V]: scores of each token of `target_ids` [B, T] given those before it and the source `input_ids`
        [B, S]. Negative targets are after the end; `others` are further arguments of the encoder."""
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        states: Tensor = self.run_backbone(
            {"input_ids": input_ids, "attention_mask": mask, **others}
        ).last_hidden_state.float()
        vector = pool_text(states, mask, self.config.decoder_pooling)
        begin = torch.full_like(target_ids[:, :1], self.config.pad_token_id or 0)
        table = word_table(self.base_model, self.config.vocab_size) if self.words is None else self.words
        words: Tensor = cast("nn.Embedding", table)(torch.cat([begin, target_ids[:, :-1].clamp(min=0)], dim=1)).float()
        # half precision gains little in steps over words
        with torch.autocast(states.device.type, enabled=False):
            if not self.attends:
                repeated = vector.unsqueeze(1).expand(-1, words.shape[1], -1)
                decoded: Tensor = self.decoder(torch.cat([words, repeated], dim=-1))[0]
            else:
                decoded = self._attended(self.decoder(words, self._state(vector))[0], states, mask)
        scores: Tensor = self.output(self.dropout(decoded))
        return scores

    def _state(self, vector: Tensor) -> Any:
        """The state in which decoding begins, from `vector` [B, H]; the cell of an LSTM begins at zero."""
        state = torch.tanh(self.first(vector)).unsqueeze(0)
        return (state, torch.zeros_like(state)) if isinstance(self.decoder, nn.LSTM) else state

    def _attended(self, decoded: Tensor, states: Tensor, mask: Tensor) -> Tensor:
        """[B, T, D]: tanh(W [c; h]) of `decoded` h [B, T, D], where c = Σ a s over `states` s [B, S, H] and a is the
        softmax of (W h) · s over the tokens of the source (Luong et al. 2015, eq. 5 and 7, `general`)."""
        energies = self.query(decoded) @ states.transpose(1, 2)
        weights = energies.masked_fill(mask.unsqueeze(1) == 0, float("-inf")).softmax(-1)
        return torch.tanh(self.combined(torch.cat([weights @ states, decoded], dim=-1)))


def word_table(backbone: Any, size: int) -> nn.Embedding | None:
    """The table of embeddings of `backbone` with a row for each of `size` tokens; None where it has none."""
    try:
        table = backbone.get_input_embeddings()
    except NotImplementedError:
        return None
    return table if isinstance(table, nn.Embedding) and table.num_embeddings >= size else None
