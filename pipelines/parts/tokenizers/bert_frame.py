"""BERT's special tokens: `[CLS] A [SEP]`, `[CLS] A [SEP] B [SEP]` with token types 0 and 1 (Devlin et al. 2018)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Fast
    from transformers import PreTrainedTokenizerFast

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def with_special_tokens(fast: Fast) -> PreTrainedTokenizerFast:
    """`fast`, whose vocabulary contains the tokens SPECIAL, as a tokenizer that adds them to texts and pairs."""
    from tokenizers import processors
    from transformers import PreTrainedTokenizerFast

    fast.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, fast.token_to_id(token)) for token in ("[CLS]", "[SEP]")],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=fast,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )
