"""Fit of a tokenizer to a text: fertility (tokens per word), and the share of unknown tokens.

Fertility is the number of tokens per word (Ács 2019; Rust et al. 2021, arXiv:2012.15613, §3.2), for languages without
spaces per character. Both are measured on the beginning of a table, which is shuffled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.errors import RecipeError
from pipelines.parts.segmentations import UNSPACED
from pipelines.parts.tokenizers import Tokenizer
from pipelines.training.batches.reading_texts import read_beginning

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from pipelines.recipe.schema import Stage

SAMPLE_BYTES = 500_000
"""UTF-8 bytes of a table that are measured."""
EXAMPLES = 5
"""Number of unknown words in an error message."""


@dataclass(frozen=True)
class TokenizerStatistics:
    """Counts of a tokenizer's tokens on a text."""

    tokens: int
    unknown: int
    """Number of unknown tokens."""
    units: int
    """Number of words, or of characters in languages without spaces."""
    examples: tuple[tuple[str, int], ...]
    """The most frequent unknown words, with their counts."""

    @property
    def fertility(self) -> float:
        """Tokens per word or character."""
        return self.tokens / max(1, self.units)

    @property
    def unknown_share(self) -> float:
        """Share of the tokens that are unknown."""
        return self.unknown / max(1, self.tokens)


def tokenizer_statistics(table: Path, tokenizer: PreTrainedTokenizerFast, language: str) -> TokenizerStatistics:
    """Count the tokens of `tokenizer` on the beginning of `table`, a text of `language`."""
    from tokenizers import Tokenizer as Fast

    fast = Fast.from_str(tokenizer.backend_tokenizer.to_str())
    fast.no_truncation()
    fast.no_padding()
    unknown_id = tokenizer.unk_token_id
    tokens = unknown = units = 0
    examples: Counter[str] = Counter()
    for text in read_beginning([table], SAMPLE_BYTES):
        words = text.split()
        units += sum(map(len, words)) if language in UNSPACED else len(words)
        encoded = fast.encode(text, add_special_tokens=False)
        tokens += len(encoded.ids)
        if unknown_id in encoded.ids:
            unknown_words = [
                text[slice(*at)] for at, one in zip(encoded.offsets, encoded.ids, strict=True) if one == unknown_id
            ]
            unknown += len(unknown_words)
            examples.update(unknown_words)
    shown = sorted(examples.items(), key=lambda one: (-one[1], one[0]))[:EXAMPLES]
    return TokenizerStatistics(tokens, unknown, units, tuple(shown))


def check_tokenizer(
    stage: Stage, name: str, tables: Mapping[str, Path], tokenizer: PreTrainedTokenizerFast, language: str
) -> dict[str, float]:
    """Fertility and unknown share of every table, as metrics.

    Raises RecipeError where they exceed the limits of stage `name`.
    """
    metrics: dict[str, float] = {}
    for table, path in tables.items():
        measured = tokenizer_statistics(path, tokenizer, language)
        metrics[f"fertility/{table}"] = round(measured.fertility, 4)
        metrics[f"unknown/{table}"] = round(measured.unknown_share, 6)
        kind = stage.tokenizer.name if stage.tokenizer is not None else type(tokenizer).__name__
        default = (stage.tokenizer or Tokenizer).expected_unknown_share
        limit = stage.limits.unknown if stage.limits.unknown is not None else default
        if measured.unknown_share > limit:
            examples = ", ".join(f"{word!r} ({count})" for word, count in measured.examples)
            raise RecipeError(
                f"stage {name}: {measured.unknown_share:.2%} of the tokens of {path} are unknown to its tokenizer "
                f"({kind}, {len(tokenizer)} tokens), at most {limit:.2%} are allowed; most often {examples}. Train "
                "the tokenizer on text like this or with a larger vocab_size, remove such text by cleaning, or allow "
                "more with `limits: {unknown: …}`"
            )
        if stage.limits.fertility is not None and measured.fertility > stage.limits.fertility:
            unit = "character" if language in UNSPACED else "word"
            raise RecipeError(
                f"stage {name}: its tokenizer ({kind}, {len(tokenizer)} tokens) cuts a {unit} of {path} into "
                f"{measured.fertility:.2f} tokens on average, at most {stage.limits.fertility:.2f} are allowed; train "
                "it on text like this, add words of it with `vocabulary: {tokens: …}`, or raise `limits: {fertility: "
                "…}`"
            )
    return metrics
