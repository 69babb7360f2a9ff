"""WordPiece: greedy longest-match sub-words (Wu et al. 2016; Devlin et al. 2018, §3)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Self

from pydantic import Field

from pipelines.tokenizers import Tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


class WordPiece(Tokenizer, name="wordpiece"):
    """BERT's tokenizer, trained on the corpus. Chinese characters are tokens of their own, as in BERT."""

    paper = "arXiv:1810.04805"

    vocab_size: int = Field(8192, ge=64)
    lowercase: bool = True
    sample_bytes: int = Field(20_000_000, gt=0)
    """UTF-8 bytes of text that the vocabulary is learnt from."""

    def train(self, texts: Iterable[str]) -> PreTrainedTokenizerFast:
        from tokenizers import Tokenizer as Fast
        from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers
        from transformers import PreTrainedTokenizerFast

        special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        fast = Fast(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=100))
        fast.normalizer = normalizers.BertNormalizer(lowercase=self.lowercase, strip_accents=None)
        fast.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        fast.decoder = decoders.WordPiece(prefix="##")
        trainer = trainers.WordPieceTrainer(
            vocab_size=self.vocab_size, special_tokens=special, show_progress=False, continuing_subword_prefix="##"
        )
        fast.train_from_iterator(texts, trainer)
        fast.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]",
            pair="[CLS] $A [SEP] $B:1 [SEP]:1",
            special_tokens=[("[CLS]", fast.token_to_id("[CLS]")), ("[SEP]", fast.token_to_id("[SEP]"))],
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

    def tiny(self) -> Self:
        smaller = {"vocab_size": min(self.vocab_size, 1024), "sample_bytes": min(self.sample_bytes, 300_000)}
        return self.model_copy(update=smaller)
