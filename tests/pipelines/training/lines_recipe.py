"""A recipe of stages with several lines, of real parts, that takes seconds."""

from __future__ import annotations

from tests.pipelines.training.small_recipe import masked_lm_stage, recipe_of

RECIPE = recipe_of(
    "lines",
    "arXiv:1901.11504",
    masked_lm_stage(tokens=4096, positions=32, batch_tokens=512, corruption="token_mask"),
    """\
  share:
    kind: finetune
    start: general
    strategy: full
    dropout: 0.1
    optimizer: {lr: 1.0e-3, precision: 32-true}
    budget: {epochs: 2, batch_texts: 8, batch_tokens: 512, length: 32}
    mixing: {name: proportional, exponent: 0.5}
    lines:
      topic: {corpus: task, head: sequence_classification, objective: cross_entropy}
      again: {corpus: task, head: {name: sequence_classification, pooling: cls}, objective: cross_entropy, weight: 0.5}
      mlm: {corpus: task_text, head: masked_lm, objective: masked_lm, corruption: token_mask}
  alone: {kind: finetune, start: share, corpus: task, head: sequence_classification, objective: cross_entropy,
          strategy: full, budget: {epochs: 1, batch_texts: 8, length: 32}}
  masks:
    like: general
    start: share
    kind: adapt_domain
    corpus: domain
    mixing: alternating
    lines:
      tokens: {corruption: token_mask}
      more: {corruption: {name: token_mask, rate: 0.4}}
""",
)
