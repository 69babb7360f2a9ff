"""AWD-LSTM and ULMFiT beside a plain torch loop by their papers' settings: perplexity and accuracy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from benchmarks.harness.benchmark import Benchmark, Setting
from benchmarks.harness.record import Figure, Goal, Measured
from benchmarks.harness.stages import Stages, tables
from benchmarks.harness.turns import median
from benchmarks.peers.awd_lstm import train_language_model
from benchmarks.peers.awd_lstm_classifier import Labelled, accuracy, train_classifier
from pipelines.corpora.documentation.docstrings import documentation, task_rows
from pipelines.corpora.settings.task import DocumentationTask
from pipelines.corpora.shards.example_table import ExampleTable
from pipelines.corpora.shards.tables import TEXTS, write_rows
from pipelines.models.opening import open_model, open_tokenizer
from pipelines.networks.awd_lstm import AwdLstmConfig
from pipelines.serving.answering.answerer import Answerer
from pipelines.training.loop.inputs import batches_of
from pipelines.vocabulary import Field

PEER = "a plain loop"
SEEDS, LABELLED = 3, 20
"""Seeds of each side; training examples of each class."""
TOKENS, QUICK_TOKENS, LENGTH, ROWS = 4_000_000, 20_000, 70, 32
EPOCHS, BATCH, TEXT_LENGTH = 20, 16, 256
HELD_OUT, HELD_ROWS = 2000, 16
"""Documents whose tokens are predicted, the last of all, and rows in which they are read."""
MARGIN = 1.02
"""Quotient of perplexities that is still the same."""
SAME = "perplexity as a share of a plain loop's"
ABOVE = f"accuracy above {PEER}'s lowest seed"
RECIPE = """\
name: recurrent
paper: arXiv:1801.06146
stages:  # parts, sizes and settings of recipe ulmfit
  general:
    kind: pretrain
    corpus: general
    tokenizer: {{name: words, vocab_size: 8192, min_count: 3}}
    backbone: {{name: awd_lstm, hidden_size: 128, inner_size: 192, num_hidden_layers: 3, embedding_dropout: 0.02,
                input_dropout: 0.1, inner_dropout: 0.1, output_dropout: 0.1, weight_dropout: 0.1}}
    layout: contiguous
    head: causal_lm
    objective: [causal_lm, activation_regularization]
    strategy: full
    optimizer: {{lr: 4.0e-3, betas: [0.7, 0.99]}}
    budget: {{tokens: {tokens}, batch_tokens: {batch_tokens}, length: {length}}}
    seeds: [{seed}]
  classify:
    kind: finetune
    start: general
    corpus: task
    head: {{name: sequence_classification, pooling: mean}}
    objective: cross_entropy
    strategy: full
    schedule: linear
    optimizer: {{lr: 5.0e-3, betas: [0.7, 0.99]}}
    budget: {{epochs: {epochs}, batch_texts: {batch}, length: {text_length}}}
    seeds: [{seed}]
"""


class Side(NamedTuple):
    """What one side reached under one seed."""

    perplexity: float
    accuracy: float


class RecurrentParity(Benchmark):
    """Both read the same rows of the same tokens, step for step, with a network of the same sizes and dropout rates.
    The plain loop has the optimizer, schedule, clipping and regularisation of the papers; its classifier is fine-tuned
    as Howard & Ruder 2018 write it and once more all at once under a linear layer, and validation chooses, as ours was
    chosen. Speed beside a plain loop is measured by `architectures`."""

    name = "recurrent_parity"
    what = (
        f"AWD-LSTM beside a plain torch loop by its published settings: perplexity of held-out documentation strings "
        f"after {TOKENS / 1e6:g} million tokens, and accuracy of classifiers that go on from there on {LABELLED} "
        "labels for each of ten classes (ULMFiT); each seed of both."
    )
    slow = True
    goals: ClassVar[tuple[Goal, ...]] = (
        Goal(figure=SAME, at_most=MARGIN, unit=""),
        Goal(figure=ABOVE, at_least=0, unit=""),
    )

    def measure(self, setting: Setting) -> Measured:
        torch.set_num_threads(setting.threads)
        text, held = texts(setting)
        pairs = [both(setting, text, held, seed) for seed in range(1 if setting.quick else SEEDS)]
        ours, peers = zip(*pairs, strict=True)
        lowest = min(one.accuracy for one in peers)
        figures = [
            median(SAME, [own.perplexity / other.perplexity for own, other in pairs], ""),
            median(ABOVE, [one.accuracy - lowest for one in ours], ""),
        ]
        for who, sides in (("cursus", ours), (PEER, peers)):
            figures.append(median(f"perplexity, {who}", [one.perplexity for one in sides], ""))
            figures.append(median(f"accuracy, {who}", [one.accuracy for one in sides], ""))
        return Measured(figures=tuple[Figure, ...](figures))


def texts(setting: Setting) -> tuple[dict[str, Path], list[str]]:
    """Tables by name, and documents that are in none of them."""
    paths = tables(setting, labelled=True)
    if setting.quick:
        known = [str(row["text"]) for row in ExampleTable(paths["domain"])]
        return paths, known[:20]
    folder = setting.folder("text")
    documents = list(documentation("general"))
    train, held = documents[:-HELD_OUT], [text for text, _ in documents[-HELD_OUT:]]
    paths["general"] = folder / "general.parquet"
    write_rows(paths["general"], TEXTS, ((text, where, "docs") for text, where in train))
    task = DocumentationTask(documentation="scipy")
    rows: dict[str, list[dict[str, str]]] = {"train": [], "validation": [], "test": []}
    counts: dict[str, int] = {}
    for one, label, _, part in task_rows(task):
        counts[label] = counts.get(label, 0) + (part == "train")
        if part in rows and (part != "train" or counts[label] <= LABELLED):
            rows[part].append({"text": one, "label": label})
    for part, chosen in rows.items():
        paths[part] = _write(folder / f"{part}.parquet", chosen)
    return paths, held


def both(setting: Setting, text: dict[str, Path], held: Sequence[str], seed: int) -> tuple[Side, Side]:
    """Ours and the plain loop's."""
    recipe = RECIPE.format(
        tokens=QUICK_TOKENS if setting.quick else TOKENS, batch_tokens=ROWS * LENGTH, length=LENGTH, seed=seed,
        epochs=1 if setting.quick else EPOCHS, batch=BATCH, text_length=TEXT_LENGTH,
    )  # fmt: skip
    stages = Stages(setting, f"recurrent{seed}", recipe, text)
    general = stages.make("general")
    opened, tokenizer = open_model(general, "cpu"), open_tokenizer(general)
    end = int(tokenizer.eos_token_id)
    rows = tokenizer(list(held), add_special_tokens=False)["input_ids"]
    tokens = torch.tensor([token for row in rows for token in (*row, end)])
    answerer = Answerer(stages.make("classify"), setting.threads)
    test = [*ExampleTable(text["test"])]
    right = [answer == row["label"] for answer, row in zip(answerer.answer(test), test, strict=True)]
    network: Any = opened.network

    def read(ids: Tensor, state: Any) -> tuple[Tensor, Any]:
        outputs = network(input_ids=ids, memory=state)
        return outputs.logits, outputs.memory

    own = Side(perplexity(read, tokens), sum(right) / len(right))
    return own, _peer(stages, general, text, tokens, seed, epochs=1 if setting.quick else EPOCHS)


def perplexity(read: Callable[[Tensor, Any], tuple[Tensor, Any]], tokens: Tensor) -> float:
    """exp of the mean cross-entropy of `tokens` [N] in parallel rows, each with its state carried along.

    `read` maps ids [B, L] and the state before them, None at first, to logits [B, L, V] and the state after them.
    """
    rows = min(HELD_ROWS, max(1, len(tokens) // 2))
    stream = tokens[: len(tokens) // rows * rows].view(rows, -1)
    total, count, state = 0.0, 0, None
    with torch.inference_mode():
        for first in range(0, stream.shape[1] - 1, LENGTH):
            ids = stream[:, first : min(first + LENGTH, stream.shape[1] - 1)]
            targets = stream[:, first + 1 : first + 1 + ids.shape[1]]
            logits, state = read(ids, state)
            total += float(cross_entropy(logits.flatten(0, 1).double(), targets.flatten(), reduction="sum"))
            count += targets.numel()
    return math.exp(total / count)


def _peer(stages: Stages, general: Path, text: dict[str, Path], tokens: Tensor, seed: int, epochs: int) -> Side:
    job = stages.job("general")
    tokenizer = open_tokenizer(general)
    (batches,) = batches_of(job, {"": None}, tokenizer).lines
    rows: list[Tensor] = [batch[Field.INPUT_IDS] for batch in batches]
    begins = [step % batches.steps_per_epoch == 0 for step in range(len(rows))]
    network = train_language_model(AwdLstmConfig.from_pretrained(general), rows, begins, seed)

    def read(ids: Tensor, state: Any) -> tuple[Tensor, Any]:
        states, _, after = network(ids, state)
        return network.logits(states), after

    names = sorted({str(row["label"]) for row in ExampleTable(text["train"])})
    parts = {part: _labelled(tokenizer, text[part], names) for part in ("train", "validation", "test")}
    classifier = train_classifier(network, parts["train"], parts["validation"], len(names), epochs, BATCH, seed)
    return Side(perplexity(read, tokens), accuracy(classifier, parts["test"]))


def _labelled(tokenizer: Any, table: Path, names: Sequence[str]) -> Labelled:
    rows = [*ExampleTable(table)]
    ids = tokenizer([row["text"] for row in rows], truncation=True, max_length=TEXT_LENGTH)["input_ids"]
    return Labelled(ids, [names.index(str(row["label"])) for row in rows])


def _write(path: Path, rows: Sequence[dict[str, str]]) -> Path:
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.Table.from_pylist([*rows]), path)
    return path
