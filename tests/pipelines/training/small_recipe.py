"""Recipes of real parts whose stages take seconds."""

from __future__ import annotations


def masked_lm_stage(
    name: str = "general",
    *,
    tokens: int,
    positions: int = 64,
    width: int = 32,
    batch_tokens: int = 1024,
    corruption: str = "{name: token_mask, rate: 0.2}",
    objective: str = "masked_lm",
    dropout: str = "    dropout: 0.1\n",
    channel: str = "",
) -> str:
    """A stage that pre-trains a BERT of two layers on rows of 32 tokens.

    `channel` is both an annotation and the embedding that reads what it makes; empty for none.
    """
    annotations = f"    annotations: {channel}\n" if channel else ""
    embeddings = f"      embeddings: {channel}\n" if channel else ""
    dims = f"hidden_size: {width}, num_hidden_layers: 2, num_attention_heads: 2, intermediate_size: {2 * width}"
    return f"""\
  {name}:
    kind: pretrain
    corpus: general
    tokenizer: {{name: wordpiece, vocab_size: 512}}
{annotations}\
    backbone:
      name: transformer
      positions: {positions}
      dims: {{{dims}}}
{embeddings}\
    corruption: {corruption}
    head: masked_lm
    objective: {objective}
    strategy: full
{dropout}\
    optimizer: {{lr: 1.0e-3, precision: 32-true}}
    budget: {{tokens: {tokens}, batch_tokens: {batch_tokens}, length: 32}}
"""


def recipe_of(name: str, paper: str, *stages: str) -> str:
    """A recipe of `stages`."""
    return f"name: {name}\npaper: {paper}\nstages:\n" + "".join(stages)


CLASSIFY = """\
  classify:
    kind: finetune
    start: general
    corpus: task
    head: sequence_classification
    objective: cross_entropy
    strategy: full
    optimizer: {lr: 1.0e-3, precision: 32-true}
    budget: {epochs: 1, batch_texts: 4, length: 32}
"""
"""A stage of labels after `general`, in a few steps."""
GENERAL = recipe_of("small", "arXiv:1810.04805", masked_lm_stage(tokens=102400))
"""One stage."""
RECIPE = recipe_of(
    "small",
    "arXiv:1810.04805",
    masked_lm_stage(
        tokens=204800,
        corruption="[adjacent_halves, {name: token_mask, rate: 0.2}]",
        objective="[masked_lm, contrastive]",
    ),
    """\
  classify:
    kind: finetune
    start: general
    corpus: task
    head: sequence_classification
    objective: cross_entropy
    strategy: full
    dropout: 0.2
    optimizer: {lr: 3.0e-3, precision: 32-true}
    budget: {epochs: 60, batch_texts: 4, length: 48, patience: 12}
  small:
    kind: compress
    start: classify
    teacher: classify
    corpus: [task, task_text]
    head: sequence_classification
    compression: {name: select_layers, share: 0.5}
    objective: [match_logits, match_hidden]
    strategy: full
    optimizer: {lr: 1.0e-3, precision: 32-true}
    budget: {epochs: 1, batch_texts: 16, length: 48}
""",
)
"""Three of them."""
