"""Byte-level BPE: pairs of bytes merged by frequency, so that no text is unknown (Radford et al. 2019; Liu et al. 2019)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Self

from pydantic import Field

from pipelines.parts.tokenizers import Tokenizer

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Fast
    from transformers import PreTrainedTokenizerFast


class ByteBPE(Tokenizer, name="byte_bpe"):
    """RoBERTa's tokenizer, trained on the corpus: `<s> A </s>`, `<s> A </s> </s> B </s>`, one token type.

    Every text begins with a space, so that a word has the same tokens wherever it stands.
    """

    paper = "arXiv:1907.11692"

    vocab_size: int = Field(8192, ge=512)
    """Number of tokens: 256 bytes, the special ones, and merges."""
    sample_bytes: int = Field(20_000_000, gt=0)
    """UTF-8 bytes of text that the vocabulary is learnt from."""

    def train(self, texts: Iterable[str]) -> PreTrainedTokenizerFast:
        from tokenizers import AddedToken, processors
        from transformers import PreTrainedTokenizerFast

        special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
        fast = self._train_merges(texts, special)
        end, begin = ((token, special.index(token)) for token in ("</s>", "<s>"))
        # a token's offsets leave out the space that it begins with
        fast.post_processor = processors.RobertaProcessing(end, begin, trim_offsets=True, add_prefix_space=True)
        return PreTrainedTokenizerFast(
            tokenizer_object=fast,
            bos_token="<s>",
            cls_token="<s>",
            eos_token="</s>",
            sep_token="</s>",
            pad_token="<pad>",
            unk_token="<unk>",
            # the space before a masked word belongs to the mask
            mask_token=AddedToken("<mask>", lstrip=True, special=True),
            model_input_names=["input_ids", "attention_mask"],
        )

    def _train_merges(self, texts: Iterable[str], special: Sequence[str]) -> Fast:
        """The merges learnt from `texts`, without a frame; `special` come first."""
        from tokenizers import Tokenizer as Fast
        from tokenizers import decoders, models, pre_tokenizers, trainers

        fast = Fast(models.BPE())
        fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
        fast.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=self.vocab_size,
            special_tokens=list(special),
            # every byte, seen or not, in the order of their signs: no text is unknown, and no order is a hash table's
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        fast.train_from_iterator(texts, trainer)
        return fast

    def tiny(self) -> Self:
        smaller = {"vocab_size": min(self.vocab_size, 1024), "sample_bytes": min(self.sample_bytes, 300_000)}
        return self.model_copy(update=smaller)
