"""A masked language model of random weights, saved as a stage saves one."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import torch

from pipelines.models.opening import ModelRecord
from pipelines.parts.backbones.transformer import Transformer
from pipelines.parts.heads.masked_lm import MaskedLMHead
from pipelines.parts.tokenizers.wordpiece import WordPiece
from tests.small_corpus import documents


@cache
def masked_model() -> Path:
    """Folder of a BERT over 1,500 word pieces, made once in a process."""
    folder = Path(tempfile.mkdtemp(prefix="masked_model"))
    tokenizer = WordPiece(vocab_size=1500).train(documents("logging"))
    config = Transformer(positions=64).tiny().config(tokenizer, 64)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = MaskedLMHead().build(config, None)
        with torch.no_grad():  # fresh weights are so small that all words are as probable
            for parameter in network.parameters():
                parameter.add_(0.2 * torch.randn_like(parameter))
    ModelRecord(head=MaskedLMHead()).write(network.config)
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
