"""How well a tokenizer suits a text: into how many tokens it cuts a word, and how much of the text it does not know.

Fertility is tokens for each word (Ács 2019; Rust et al. 2021, arXiv:2012.15613, §3.2), of languages without spaces tokens for
each character. Both are measured on the beginning of a table, which is shuffled.
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
from pipelines.training.batches.reading_texts import beginning

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from pipelines.recipe.schema import Stage

SAMPLE_BYTES = 500_000
"""UTF-8 bytes of a table that are looked at."""
EXAMPLES = 5
"""Unknown words that are shown to the user."""


@dataclass(frozen=True)
class Suited:
    """A tokenizer on a text."""

    tokens: int
    unknown: int
    """Tokens that stand for what the tokenizer does not know."""
    units: int
    """Words, or characters where words are not spaced."""
    examples: tuple[tuple[str, int], ...]
    """The unknown words seen most often, and how often."""

    @property
    def fertility(self) -> float:
        return self.tokens / max(1, self.units)

    @property
    def unknown_share(self) -> float:
        return self.unknown / max(1, self.tokens)


def suited(table: Path, tokenizer: PreTrainedTokenizerFast, language: str) -> Suited:
    """How `tokenizer` suits the beginning of `table`, a text of `language`."""
    from tokenizers import Tokenizer as Fast

    fast = Fast.from_str(tokenizer.backend_tokenizer.to_str())
    fast.no_truncation()
    fast.no_padding()
    unknown_id = tokenizer.unk_token_id
    tokens = unknown = units = 0
    examples: Counter[str] = Counter()
    for text in beginning([table], SAMPLE_BYTES):
        words = text.split()
        units += sum(map(len, words)) if language in UNSPACED else len(words)
        encoded = fast.encode(text, add_special_tokens=False)
        tokens += len(encoded.ids)
        if unknown_id in encoded.ids:
            found = [
                text[slice(*at)] for at, one in zip(encoded.offsets, encoded.ids, strict=True) if one == unknown_id
            ]
            unknown += len(found)
            examples.update(found)
    shown = sorted(examples.items(), key=lambda one: (-one[1], one[0]))[:EXAMPLES]
    return Suited(tokens, unknown, units, tuple(shown))


def check_suited(
    stage: Stage, name: str, tables: Mapping[str, Path], tokenizer: PreTrainedTokenizerFast, language: str
) -> dict[str, float]:
    """Fertility and unknown share of every table, as metrics. RecipeError where they exceed the limits of the stage `name`."""
    metrics: dict[str, float] = {}
    for table, path in tables.items():
        found = suited(path, tokenizer, language)
        metrics[f"fertility/{table}"] = round(found.fertility, 4)
        metrics[f"unknown/{table}"] = round(found.unknown_share, 6)
        kind = stage.tokenizer.name if stage.tokenizer is not None else type(tokenizer).__name__
        usual = (stage.tokenizer or Tokenizer).usually_unknown
        most = stage.limits.unknown if stage.limits.unknown is not None else usual
        if found.unknown_share > most:
            examples = ", ".join(f"{word!r} ({count})" for word, count in found.examples)
            raise RecipeError(
                f"stage {name}: {found.unknown_share:.2%} of the tokens of {path} are unknown to its tokenizer ({kind}, "
                f"{len(tokenizer)} tokens), at most {most:.2%} may be; most often {examples}. Train the tokenizer on text like "
                "this or with a larger vocab_size, clean such text away, or allow more with `limits: {unknown: …}`"
            )
        if stage.limits.fertility is not None and found.fertility > stage.limits.fertility:
            unit = "character" if language in UNSPACED else "word"
            raise RecipeError(
                f"stage {name}: its tokenizer ({kind}, {len(tokenizer)} tokens) cuts a {unit} of {path} into "
                f"{found.fertility:.2f} tokens on average, at most {stage.limits.fertility:.2f} are allowed; train it on text "
                "like this, add words of it with `vocabulary: {tokens: …}`, or raise `limits: {fertility: …}`"
            )
    return metrics
