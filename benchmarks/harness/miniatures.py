"""BERT's miniatures (Turc et al. 2019) with random weights, as the first stage of a recipe."""

from __future__ import annotations

RATE = 0.15
"""Share of tokens that are predicted."""
STEP_TOKENS = 4096
INITIAL = """\
name: {name}
paper: arXiv:1908.08962
stages:
  initial:
    kind: pretrain
    corpus: general
    tokenizer: {{name: wordpiece, vocab_size: {vocabulary}, sample_bytes: 20000000}}
    backbone: {{name: transformer, architecture: bert, positions: 512,
               dims: {{hidden_size: {hidden}, num_hidden_layers: {layers}, num_attention_heads: {heads},
                      intermediate_size: {inner}}}}}
    corruption: {{name: token_mask, rate: {rate}}}
    head: masked_lm
    objective: masked_lm
    strategy: full
    limits: {{unknown: 1.0}}
    optimizer: {{lr: 5.0e-4, weight_decay: 0.01}}
    budget: {{tokens: 0, batch_tokens: {step_tokens}, length: {length}}}
"""


def initial(name: str, layers: int, hidden: int, *, quick: bool, length: int = 128) -> str:
    """A recipe whose stage `initial` creates a tokenizer and random weights; other stages can be appended."""
    return INITIAL.format(
        name=name, vocabulary=4096 if quick else 30522, hidden=hidden, layers=layers, heads=hidden // 64,
        inner=4 * hidden,
        rate=RATE, step_tokens=STEP_TOKENS, length=length,
    )  # fmt: skip
