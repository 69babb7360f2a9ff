"""Steps of a decoder that begins as its encoder (`copied_decoder`), for texts that are written side by side.

Shapes: B sources, R texts in a step, L tokens of a source, H the width, V the vocabulary.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from pipelines.networks.copied_decoder import CopiedDecoder


class CopiedSteps:
    """`NextToken` of `network` over the sources `ids` [B, L] with their attention `mask` [B, L].

    A text begins after the first token of its source, which begins every row. `tokens` is the size of the tokenizer's
    vocabulary; the rest of the network's is no token.
    """

    def __init__(self, network: CopiedDecoder, ids: Tensor, mask: Tensor, tokens: int) -> None:
        self._network, self._tokens, self._first = network, tokens, ids[:, 0]
        self._states, self._mask = network.encode(ids, mask), mask
        self._cache: Any = None

    def __call__(self, parents: Tensor, last: Tensor | None) -> Tensor:
        if last is not None:
            self._states, self._mask = self._states[parents], self._mask[parents]
            self._cache.reorder_cache(parents)
        outputs = self._network.decoder(
            input_ids=(self._first if last is None else last).unsqueeze(1),
            encoder_hidden_states=self._states,
            encoder_attention_mask=self._mask,
            past_key_values=self._cache,
            use_cache=True,
        )
        self._cache = outputs.past_key_values
        scores = self._network.score(outputs.last_hidden_state[:, -1])
        return scores.float().log_softmax(-1)[:, : self._tokens]
