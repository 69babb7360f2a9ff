"""Recipes of real parts whose stages take seconds."""

GENERAL = """\
name: small
paper: arXiv:1810.04805
stages:
  general:
    kind: pretrain
    corpus: general
    tokenizer: {name: wordpiece, vocab_size: 512}
    backbone:
      name: transformer
      positions: 64
      dims: {hidden_size: 32, num_hidden_layers: 2, num_attention_heads: 2, intermediate_size: 64}
    corruption: {name: token_mask, rate: 0.2}
    head: masked_lm
    objective: masked_lm
    strategy: full
    dropout: 0.1
    optimizer: {lr: 1.0e-3, precision: 32-true}
    budget: {tokens: 102400, batch_tokens: 1024, length: 32}
"""
"""One stage."""

RECIPE = """\
name: small
paper: arXiv:1810.04805
stages:
  general:
    kind: pretrain
    corpus: general
    tokenizer: {name: wordpiece, vocab_size: 512}
    backbone:
      name: transformer
      positions: 64
      dims: {hidden_size: 32, num_hidden_layers: 2, num_attention_heads: 2, intermediate_size: 64}
    corruption: [adjacent_halves, {name: token_mask, rate: 0.2}]
    head: masked_lm
    objective: [masked_lm, contrastive]
    strategy: full
    dropout: 0.1
    optimizer: {lr: 1.0e-3, precision: 32-true}
    budget: {tokens: 204800, batch_tokens: 1024, length: 32}
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
"""
"""Three of them."""
