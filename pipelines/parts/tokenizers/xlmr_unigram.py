"""Unigram tokenizer with RoBERTa's special tokens, for text of many languages (Conneau et al. 2020, §3, §4)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from pipelines.parts.tokenizers.unigram import UnigramTokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


class XlmrUnigram(UnigramTokenizer, name="xlmr_unigram"):
    """XLM-R's tokenizer, trained on the corpus: `<s> A </s>`, `<s> A </s> </s> B </s>`.

    It learns pieces from raw text of all languages and knows none of them. Ids are in the order of the published one,
    `<mask>` last.
    """

    paper = "arXiv:1911.02116"
    offers: ClassVar[frozenset[str]] = frozenset({"mask"})

    def train(self, texts: Iterable[str]) -> PreTrainedTokenizerFast:
        from tokenizers import processors
        from transformers import PreTrainedTokenizerFast

        frame = ["<s>", "</s>"]
        fast = self._train_unigram(texts, ["<s>", "<pad>", "</s>", "<unk>"], ["<mask>"])
        fast.post_processor = processors.TemplateProcessing(
            single="<s> $A </s>",
            pair="<s> $A </s> </s> $B </s>",
            special_tokens=[(token, fast.token_to_id(token)) for token in frame],
        )
        return PreTrainedTokenizerFast(
            tokenizer_object=fast,
            bos_token="<s>",
            cls_token="<s>",
            eos_token="</s>",
            sep_token="</s>",
            unk_token="<unk>",
            pad_token="<pad>",
            mask_token="<mask>",
            model_input_names=["input_ids", "attention_mask"],
        )
