"""Stacked gated recurrent units, a recurrent backbone (Cho et al. 2014), which Skip-Thought's encoder is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.parts.backbones.recurrent import RecurrentBackbone

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerFast


class Gru(RecurrentBackbone, name="gru"):
    """A state behind reset and update gates; three quarters of the weights of an `lstm` of its width."""

    paper = "arXiv:1406.1078"

    def config(self, tokenizer: PreTrainedTokenizerFast, length: int) -> PretrainedConfig:
        from pipelines.networks.gru import GruConfig, register_auto_classes

        register_auto_classes()
        return GruConfig(vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id, **dict(self))
