"""Unigram tokenizer with XLNet's special tokens, the classification token last (Yang et al. 2019, §2.5)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from pipelines.parts.tokenizers.unigram import UnigramTokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


class XLNetUnigram(UnigramTokenizer, name="xlnet_unigram"):
    """XLNet's tokenizer, trained on the corpus: `A <sep> <cls>`, `A <sep> B <sep> <cls>`, with token types 0, 1 and 2.

    The published one pads on the left, so that `<cls>` is always in the last column. The network uses relative
    positions only, so padding on the right is equivalent.
    """

    paper = "arXiv:1906.08237"
    offers: ClassVar[frozenset[str]] = frozenset({"mask"})

    def train(self, texts: Iterable[str]) -> PreTrainedTokenizerFast:
        from tokenizers import processors
        from transformers import PreTrainedTokenizerFast

        frame = ["<cls>", "<sep>"]
        fast = self._train_unigram(texts, ["<unk>", *frame, "<pad>", "<mask>"])
        fast.post_processor = processors.TemplateProcessing(
            single="$A:0 <sep>:0 <cls>:2",
            pair="$A:0 <sep>:0 $B:1 <sep>:1 <cls>:2",
            special_tokens=[(token, fast.token_to_id(token)) for token in frame],
        )
        return PreTrainedTokenizerFast(
            tokenizer_object=fast,
            unk_token="<unk>",
            cls_token="<cls>",
            sep_token="<sep>",
            pad_token="<pad>",
            mask_token="<mask>",
            model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        )
