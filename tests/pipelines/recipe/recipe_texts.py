"""Small recipes as text, one part of which a test replaces."""

from __future__ import annotations

from typing import NamedTuple

GENERAL = """\
name: meeting
paper: arXiv:1810.04805
stages:
  general:
    kind: pretrain
    corpus: general
    tokenizer: {tokenizer}
    segmentation: {segmentation}
    layout: {layout}
    backbone: {backbone}
    corruption: {corruption}
    head: {head}
    objective: {objective}
    strategy: full
    budget: {{tokens: 8192, batch_tokens: 1024, length: {length}}}
"""
PARTS = {
    "tokenizer": "wordpiece",
    "segmentation": "null",
    "layout": "windows",
    "backbone": "{name: transformer, architecture: bert}",
    "corruption": "token_mask",
    "head": "masked_lm",
    "objective": "masked_lm",
    "length": "32",
}
LABELLED = {
    "kind": "finetune",
    "corpus": "task",
    "head": "sequence_classification",
    "objective": "cross_entropy",
    "strategy": "full",
    "length": "64",
}
STATIC = {
    "tokenizer": "words",
    "backbone": "word_vectors",
    "corruption": "context_windows",
    "head": "path_prediction",
    "objective": "hierarchical_softmax",
}
GPT = {
    "tokenizer": "gpt_bpe",
    "backbone": "{name: transformer, architecture: gpt2}",
    "corruption": "[]",
    "head": "causal_lm",
    "objective": "causal_lm",
}


class Refused(NamedTuple):
    """A recipe, the dataset it is asked for, and what its one message must say."""

    recipe: str
    says: tuple[str, ...]
    family: str | None = None
    language: str | None = None


def written(*more: str, **parts: str) -> str:
    """A recipe with one stage on plain text, and the lines `more` behind it."""
    return GENERAL.format(**{**PARTS, **parts}) + "".join(f"{line}\n" for line in more)


def labelled(*more: str, general: dict[str, str] | None = None, **parts: str) -> str:
    """The same, and a fine-tuning behind it."""
    keys = {**LABELLED, **parts}
    length = keys.pop("length")
    lines = ["  answer:", "    start: general"]
    lines += [f"    {key}: {value}" for key, value in keys.items()]
    return written(*lines, f"    budget: {{epochs: 1, length: {length}}}", *more, **(general or {}))
