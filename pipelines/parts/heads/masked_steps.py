"""Writing into the masks of a row: each token is what the network predicts at a mask that follows what is written
(Dong et al. 2019, UniLM, §2.4)."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING

from pipelines.parts.architectures import Architecture
from pipelines.parts.heads import Batch, backbone_inputs
from pipelines.vocabulary import Field

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

IDS, VISIBLE, CACHE = str(Field.INPUT_IDS), str(Field.VISIBLE), "past_key_values"
READ = (IDS, str(Field.TOKEN_TYPE_IDS), str(Field.POSITION_IDS))
"""What a backbone reads of each token."""


class MaskedSteps:
    """`NextToken` of a network for masked tokens, over rows of `source` tokens and the masks that are written into.

    No token of `batch` attends to a later one of its target, so that the keys and values of what is written stay as
    they are: only the last written token and the mask after it are read in each step. A backbone that keeps none reads
    the whole row again.

    Args:
        network: predicts masked tokens by the modules that its architecture names.
        batch: INPUT_IDS [B, L], TOKEN_TYPE_IDS, POSITION_IDS and VISIBLE of the rows, every target masked.
        source: number of tokens before the first mask, padding included.
        tokens: size of the tokenizer's vocabulary, the rest of the network's is no token.
    """

    def __init__(self, network: PreTrainedModel, batch: Batch, source: int, tokens: int) -> None:
        import torch
        from transformers import DynamicCache

        self._network, self._tokens = network, tokens
        accepted = signature(network.base_model.forward).parameters
        inputs = backbone_inputs(batch, network)
        self._visible: Tensor = inputs[VISIBLE]
        self._inputs: dict[str, Tensor] = {name: inputs[name] for name in READ if name in accepted}
        self._rows: Tensor = self._inputs.pop(IDS)
        self._sources = torch.arange(len(self._rows), device=self._rows.device)
        self._cache = DynamicCache()
        self._kept = {CACHE: self._cache} if CACHE in accepted else {}
        self._at = source

    def __call__(self, parents: Tensor, last: Tensor | None) -> Tensor:
        from pipelines.networks.visibility import with_mask

        self._rows, self._sources = self._rows[parents], self._sources[parents]
        if last is not None:
            self._rows[:, self._at] = last
            self._at += 1
            self._cache.reorder_cache(parents)  # type: ignore[arg-type]  # any integers
        columns = slice(self._cache.get_seq_length(), self._at + 1)
        inputs = {name: value[:, columns][self._sources] for name, value in self._inputs.items()}
        inputs |= {IDS: self._rows[:, columns], VISIBLE: self._visible[:, columns, : columns.stop][self._sources]}
        outputs = self._network.base_model(**with_mask(inputs, self._network.config), **self._kept)
        self._cache.crop(-1)  # the token that is chosen takes the position of the mask
        scores = predictions(self._network, outputs.last_hidden_state[:, -1])
        return scores.float().log_softmax(-1)[:, : self._tokens]


def predictions(network: PreTrainedModel, states: Tensor) -> Tensor:
    """[…, V]: scores of the tokens behind masks with the top hidden `states` […, H], by the modules of the
    architecture."""
    architecture = Architecture.of(network.config)
    assert architecture is not None  # the head for masked tokens refuses others
    for module in architecture.masked_lm:
        states = network.get_submodule(module)(states)
    return states
