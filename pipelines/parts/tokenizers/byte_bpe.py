"""Byte-level BPE: pairs of bytes merged by frequency, without unknown tokens (Radford et al. 2019; Liu et al. 2019)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Self

from pydantic import Field

from pipelines.parts.tokenizers import MOST_WORDS, Tokenizer

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Fast
    from transformers import PreTrainedTokenizerFast


class ByteBPE(Tokenizer, name="byte_bpe"):
    """RoBERTa's tokenizer, trained on the corpus: `<s> A </s>`, `<s> A </s> </s> B </s>`, one token type.

    A space is added before every text, so that a word has the same tokens at its beginning as elsewhere.
    """

    paper = "arXiv:1907.11692"

    vocab_size: int = Field(8192, ge=512, le=MOST_WORDS)
    """Number of tokens: 256 bytes, special tokens and merges."""
    sample_bytes: int = Field(20_000_000, gt=0)
    """UTF-8 bytes of text to learn the vocabulary from."""

    def train(self, texts: Iterable[str]) -> PreTrainedTokenizerFast:
        from tokenizers import AddedToken, processors
        from transformers import PreTrainedTokenizerFast

        special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
        fast = self._train_merges(texts, special)
        end, begin = ((token, special.index(token)) for token in ("</s>", "<s>"))
        # offsets of a token exclude its leading space
        fast.post_processor = processors.RobertaProcessing(end, begin, trim_offsets=True, add_prefix_space=True)
        return PreTrainedTokenizerFast(
            tokenizer_object=fast,
            bos_token="<s>",
            cls_token="<s>",
            eos_token="</s>",
            sep_token="</s>",
            pad_token="<pad>",
            unk_token="<unk>",
            # the mask token includes the space before the masked word
            mask_token=AddedToken("<mask>", lstrip=True, special=True),
            model_input_names=["input_ids", "attention_mask"],
        )

    def _train_merges(self, texts: Iterable[str], special: Sequence[str]) -> Fast:
        """A tokenizer with merges learnt from `texts`, without post-processor; the tokens `special` have the first
        ids."""
        from tokenizers import Tokenizer as Fast
        from tokenizers import decoders, models, pre_tokenizers, trainers

        fast = Fast(models.BPE())
        fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
        fast.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=self.vocab_size,
            special_tokens=list(special),
            # all 256 bytes in a fixed order, present or not: no unknown tokens, and no dependence on a hash table's
            # order
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        fast.train_from_iterator(texts, trainer)
        return fast

    def tiny(self) -> Self:
        smaller = {"vocab_size": min(self.vocab_size, 1024), "sample_bytes": min(self.sample_bytes, 300_000)}
        return self.model_copy(update=smaller)
