"""Real text with masked tokens, and networks to read it, as the proofs of encoders share them."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from pipelines.parts.backbones.transformer import Transformer
from pipelines.parts.corruptions import TokenIds
from pipelines.parts.corruptions.token_mask import TokenMask
from pipelines.parts.heads import Head
from pipelines.parts.objectives import Batch
from pipelines.vocabulary import Field
from tests.small_corpus import documents

GATHERED = 1e-5
"""Absolute: another order of float32 sums over logits of about one."""
EXACT = 1e-6
"""Relative: the same float32 numbers, summed in another order."""


def build(head: Head, architecture: str, tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    config = Transformer(architecture=architecture, positions=None).tiny().config(tokenizer, 64)
    config._attn_implementation = "eager"
    torch.manual_seed(0)
    network = head.build(config, None)
    with torch.no_grad():  # initialised, all scores would lie within 0.1 of each other
        for value in network.parameters():
            value.add_(torch.randn_like(value) * 0.1)
    return network.eval()


def masked_batch(tokenizer: PreTrainedTokenizerFast) -> dict[Field, Tensor]:
    """Six texts of different lengths with masked tokens."""
    texts = [text[: 40 * (row + 1)] for row, text in enumerate(documents("json")[:6])]
    clean = tokenizer(texts, padding="max_length", truncation=True, max_length=40, return_tensors="np")
    tokens = TokenIds(len(tokenizer), tokenizer.mask_token_id, tuple(tokenizer.all_special_ids))
    arrays = {Field.INPUT_IDS: clean["input_ids"], Field.ORIGINAL_IDS: clean["input_ids"]}
    arrays = TokenMask(mask=1.0, random=0.0).apply(arrays, tokens, np.random.default_rng(0))
    return {
        **{name: torch.from_numpy(value) for name, value in arrays.items()},
        Field.ATTENTION_MASK: torch.from_numpy(clean["attention_mask"]),
    }


def hugging_face(batch: Batch) -> dict[str, Tensor]:
    """The batch as transformers' own networks take it, labels of masked positions included."""
    labels = torch.full_like(batch[Field.INPUT_IDS], -100)
    labels.view(-1)[batch[Field.MASKED_POSITIONS]] = batch[Field.MASKED_LABELS]
    return {"input_ids": batch[Field.INPUT_IDS], "attention_mask": batch[Field.ATTENTION_MASK], "labels": labels}
