"""A recipe whose taggers read other networks: a BERT, an ELMo, word vectors, frozen or not."""

from __future__ import annotations

from pathlib import Path

from pipelines.lineage.provenance import DataSource
from pipelines.recipe.job import Runtime
from pipelines.recipe.plan import Plan, plan
from pipelines.task_families import TaskFamily
from tests.pipelines.training.small_recipe import masked_lm_stage, recipe_of
from tests.small_tasks import write_family
from tests.steps import library_of

READING = recipe_of(
    "reading",
    "arXiv:1802.05365",
    masked_lm_stage("bert", tokens=2048, width=16, batch_tokens=512, corruption="token_mask", dropout=""),
    """\
  elmo:
    kind: pretrain
    corpus: general
    tokenizer: {name: spelled_words, vocab_size: 1100, min_count: 2}
    backbone: {name: elmo, projection_size: 12, lstm_size: 24, letter_size: 4, filters: [[1, 4], [3, 8]]}
    layout: {name: windows, framed: false}
    head: bidirectional_lm
    objective: bidirectional_lm
    strategy: full
    optimizer: {lr: 1.0e-3, precision: 32-true}
    budget: {tokens: 10240, batch_tokens: 512, length: 32}
  vectors:
    kind: pretrain
    corpus: general
    tokenizer: {name: words, vocab_size: 512, min_count: 1}
    backbone: {name: word_vectors, hidden_size: 8}
    layout: {name: windows, framed: false}
    corruption: [context_windows, negative_samples]
    head: noise_prediction
    objective: negative_sampling
    strategy: full
    optimizer: {lr: 1.0e-3, precision: 32-true}
    budget: {tokens: 2048, batch_tokens: 512, length: 32}
  tag:
    kind: finetune
    corpus: task
    tokenizer: {name: words, vocab_size: 2000, min_count: 1, split: spaces}
    backbone: {name: bilstm, hidden_size: 24, embedding_size: 8}
    features: [{from: elmo, dropout: 0.2}, {from: vectors, layers: top}]
    head: crf_tagging
    objective: crf
    strategy: full
    optimizer: {lr: 5.0e-3, precision: 32-true}
    budget: {epochs: 5, batch_texts: 8, length: 64}
  above_bert: {like: tag, features: {from: bert, layers: concat}}
  first: {like: tag, features: {from: bert, layers: 1, subwords: first}, backbone: {name: bilstm, hidden_size: 24,
          embedding_size: 0}}
  tuned: {like: tag, features: {from: bert, layers: top, trains: true}}
  further: {kind: finetune, start: tag, corpus: task, head: tagging, objective: tag_cross_entropy, strategy: full,
            optimizer: {lr: 5.0e-3, precision: 32-true}, budget: {epochs: 1, batch_texts: 8, length: 64}}
""",
)
RUNTIME = Runtime(log_every=3, checkpoint_every=4)


def reading_plan(folder: Path) -> tuple[Plan, dict[str, Path]]:
    """The plan of the recipe on a small table of tags, written into `folder`, and its tables."""
    (folder / "tables").mkdir()
    tables = write_family(folder / "tables", "tagging")
    sources = {name: DataSource(digest=name, path=str(path)) for name, path in tables.items()}
    library = library_of(folder, reading=READING)
    return plan(library.load("reading"), library, sources, TaskFamily.model_validate("tagging")), tables
