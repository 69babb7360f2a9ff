"""The regime in seconds: the stages of the shipped recipe at sizes for tests, in a checkout of their own.

Not a smoke run, whose models are not registered and which no command uses by default.
"""

from __future__ import annotations

import re
from pathlib import Path

SIZES = (
    (r"vocab_size: \d+}", "vocab_size: 512}\n    limits: {unknown: 1.0}"),
    (
        r"dims: \{[^}]*\}",
        "dims: {hidden_size: 32, num_hidden_layers: 2, num_attention_heads: 2, intermediate_size: 64}",
    ),
    (r"batch_tokens: \d+", "batch_tokens: 2048"),
    (r"\btokens: \d+", "tokens: 8192"),
    (r"length: \d+", "length: 64"),
    (r"epochs: \d+", "epochs: 1"),
    (r", patience: \d+|patience: \d+, ?", ""),
    (r"seeds: \[0, 1, 2, 3, 4\]", "seeds: [0, 1]"),
)
"""What is replaced in the recipe's file → by what."""
BRIEF = """
like: regime
stages:
  domain: null
  task: null
  scratch: null
  from_domain: null
  from_general: null
  small: null
  int8: null
  classify: {start: general, seeds: [0]}
  report: {kind: evaluate, start: [classify], corpus: task, suite: [scores]}
"""
"""A recipe of four of its stages, with one seed."""


def shorten(recipes: Path) -> None:
    """Rewrite `regime.yaml` in the folder `recipes`, without its variants.

    A student of its stages that learns the same vocabulary from the same text learns that of this size, too.
    """
    file = recipes / "regime.yaml"
    vocabulary, size = SIZES[0]
    for student in recipes.glob("*.yaml"):
        text = student.read_text(encoding="utf-8")
        if student != file and "teacher:" in text and "start: regime/" in text:
            student.write_text(re.sub(rf"wordpiece, {vocabulary}", f"wordpiece, {size}", text), encoding="utf-8")
    stages = file.read_text(encoding="utf-8").partition("\nvariants:\n")[0]
    for pattern, size in SIZES:
        stages, count = re.subn(pattern, size, stages)
        assert count, pattern
    file.write_text(f"{stages}\n", encoding="utf-8")
