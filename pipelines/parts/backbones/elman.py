"""Elman network, a recurrent backbone (Elman 1990), as a language model (Mikolov et al. 2010)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.parts.backbones.recurrent import RecurrentBackbone

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerFast


class Elman(RecurrentBackbone, name="elman"):
    """A state that is a non-linear function of the word and of the state before."""

    paper = "Mikolov et al. 2010"

    def config(self, tokenizer: PreTrainedTokenizerFast, length: int) -> PretrainedConfig:
        from pipelines.networks.elman import ElmanConfig, register_auto_classes

        register_auto_classes()
        return ElmanConfig(vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id, **dict(self))
