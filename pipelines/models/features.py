"""What a model needs to read the networks below it: their tokenizers, saved with it, and rows aligned by words.

features/0/ …      tokenizer of each network that the model reads; the networks are part of its own weights
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.parts.heads import FeatureTokenizer, Head

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerFast

    from pipelines.task_families import Row, Task
    from pipelines.task_families.encoding import EncodedExamples

FEATURES = "features"
"""Subfolder of a model folder for the tokenizers of the networks that the model reads; configuration key of their
settings."""


def feature_settings(config: PretrainedConfig) -> Sequence[dict[str, Any]]:
    """The settings of every network that a model of `config` reads; empty where it reads none."""
    settings: Sequence[dict[str, Any]] | None = getattr(config, FEATURES, None)
    return settings or ()


def save_feature_tokenizers(features: Sequence[FeatureTokenizer], out: Path) -> None:
    """Write the tokenizers of `features` under the model folder `out`."""
    for number, one in enumerate(features):
        one.tokenizer.save_pretrained(out / FEATURES / str(number))


def encode_examples(
    head: Head,
    rows: Sequence[Row],
    task: Task,
    tokenizer: PreTrainedTokenizerFast,
    length: int,
    features: Sequence[FeatureTokenizer],
    *,
    answers: bool = True,
) -> EncodedExamples:
    """`rows` as `head` encodes them, with the rows of the networks that the model reads."""
    encoded = encode_part(head, rows, task, tokenizer, length, features, answers=answers)
    head.check_encoded(encoded, length, features)
    return encoded


def encode_part(
    head: Head,
    rows: Sequence[Row],
    task: Task,
    tokenizer: PreTrainedTokenizerFast,
    length: int,
    features: Sequence[FeatureTokenizer],
    *,
    answers: bool,
) -> EncodedExamples:
    """As `encode_examples`, of a part of the rows: what is left out of all of them is not reported."""
    encoded = head.encode(rows, task, tokenizer, length, answers=answers)
    if features:
        head.add_features(encoded, features)
    return encoded
