"""Byte-level BPE with special tokens that turn any task into one sequence (Radford et al. 2018, §3.3)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from pipelines.parts.tokenizers.byte_bpe import ByteBPE

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


class GPTBPE(ByteBPE, name="gpt_bpe"):
    """GPT's input transformations: `<s> A <e>`, `<s> A <$> B <e>`; a classifier reads the hidden state at `<e>`.

    Byte-level as GPT-2; GPT itself merges the letters of words. `</s>` ends a document.
    """

    paper = "Radford et al. 2018, Improving Language Understanding by Generative Pre-Training"
    offers: ClassVar[frozenset[str]] = frozenset()

    def train(self, texts: Iterable[str]) -> PreTrainedTokenizerFast:
        from tokenizers import processors
        from transformers import PreTrainedTokenizerFast

        frame = ["<s>", "<$>", "<e>"]
        fast = self._train_merges(texts, ["<pad>", "</s>", *frame])
        template = processors.TemplateProcessing(
            single="<s> $A <e>",
            pair="<s> $A <$> $B <e>",
            special_tokens=[(token, fast.token_to_id(token)) for token in frame],
        )
        # offsets of a token exclude its leading space
        fast.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=True), template])
        return PreTrainedTokenizerFast(
            tokenizer_object=fast,
            bos_token="<s>",
            cls_token="<e>",
            eos_token="</s>",
            pad_token="<pad>",
            extra_special_tokens=["<$>"],
            model_input_names=["input_ids", "attention_mask"],
        )
