"""Cost of reading shuffled batches, compared with a training step of the default model."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from benchmarks.checkouts import ROOT
from benchmarks.harness.benchmark import Benchmark, Setting
from benchmarks.harness.record import Figure, Goal, Measured, Turn
from benchmarks.harness.turns import Turns, median, take_turns
from pipelines.corpora.documentation.docstrings import documentation
from pipelines.corpora.shards.tables import TEXTS, write_rows
from pipelines.parts.objectives import TrainingStep
from pipelines.parts.tokenizers.wordpiece import WordPiece
from pipelines.recipe.load import Library
from pipelines.training.assembly.assemble import assemble
from pipelines.training.batches.plain_text import PlainBatches
from pipelines.training.batches.token_shards import token_stream
from pipelines.training.batches.token_stream import COUNTS, MANIFEST, STARTS, TOKENS, TokenStream
from pipelines.vocabulary import Field

TOKENS_IN_ALL = 100_000_000
READ, CORRUPTED, TRAINED = "read", "read and corrupted", "trained on"


class ShuffledBatches(Benchmark):
    """Measures processor time of this process, on one thread, so that other load does not matter."""

    name = "shuffled_batches"
    what = (
        "Batches of `regime`'s general stage, windows in random order from a memory-mapped stream of 100 million "
        "tokens: the cost of reading one, compared with a training step on it. Processor time, one thread."
    )
    environment: ClassVar[dict[str, str]] = {"OMP_NUM_THREADS": "1"}
    goals: ClassVar[tuple[Goal, ...]] = (
        Goal(figure="tokens read", at_least=40, unit="M tokens/s"),
        Goal(figure="reading, of a training step", at_most=2, unit="%"),
    )

    def measure(self, setting: Setting) -> Measured:
        import torch

        torch.set_num_threads(1)
        stage = Library(ROOT / "recipes").load("regime").stages["general"]
        home, documents = setting.work, 1000 if setting.quick else 10_000
        table = home / "text.parquet"
        texts = islice(documentation("general"), documents)
        write_rows(table, TEXTS, ((text, where, "docs") for text, where in texts))
        tokenizer = WordPiece(sample_bytes=1_000_000).train(text for text, _ in islice(documentation("general"), 3000))
        stream = token_stream([table], tokenizer, None, None, home / "cache")
        stream = long_stream(stream, home / "long", TOKENS_IN_ALL // (100 if setting.quick else 1))
        rows, length = stage.budget.batch_tokens // stage.budget.length, stage.budget.length
        shape: dict[str, Any] = {"rows": rows, "length": length, "steps": 10**6, "seed": 0}
        read = PlainBatches(stream, tokenizer, stage.layout, (), **shape)
        corrupted = PlainBatches(stream, tokenizer, stage.layout, stage.corruption, **shape)
        train = training_step(stage, tokenizer, [corrupted[step] for step in range(8)])
        tokens, begins = read.tokens_per_batch, iter(range(0, 10**6, 1000))

        def turn(one: Callable[[int], Any], steps: int, first: int) -> Turn:
            return several(one, range(first, first + steps), tokens)

        train(0)
        ways = {
            READ: lambda: turn(read.batch, 300, next(begins)),
            CORRUPTED: lambda: turn(corrupted.batch, 300, next(begins)),
            TRAINED: lambda: turn(train, 2 if setting.quick else 10, 0),
        }
        turns = take_turns(ways, 2 if setting.quick else 7)
        return Measured(figures=tuple(summarise(turns)), turns=turns)


def summarise(turns: Turns) -> list[Figure]:
    """Rates, and shares of a training step on the same tokens, in processor time."""
    figures = []
    for name, title in ((READ, "reading"), (CORRUPTED, "reading and corrupting")):
        pairs = zip(turns[name], turns[TRAINED], strict=True)
        shares = [100 * (one.cpu / one.units) / (step.cpu / step.units) for one, step in pairs]
        figures.append(median(f"{title}, of a training step", shares, "%"))
    for name in (READ, CORRUPTED):
        figures.append(median(f"tokens {name}", [one.units / one.cpu / 1e6 for one in turns[name]], "M tokens/s"))
    return figures


def several(one: Callable[[int], Any], steps: range, tokens: int) -> Turn:
    """Call `one` for each of `steps`, batches of `tokens` tokens each."""
    begun, used = time.perf_counter(), time.process_time()
    for step in steps:
        one(step)
    return Turn(units=len(steps) * tokens, seconds=time.perf_counter() - begun, cpu=time.process_time() - used)


def training_step(stage: Any, tokenizer: Any, held: list[dict[str, Any]]) -> Callable[[int], None]:
    """The step of a plain loop with the stage's network, on batches held in memory."""
    import torch

    network = assemble(stage, None, tokenizer, {"": None}, "cpu")
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-4, fused=True)
    needed = frozenset().union(*(objective.needs_signals for objective in stage.objective))

    def train(step: int) -> None:
        batch: dict[Field, Any] = {Field(name): value for name, value in held[step % len(held)].items()}
        assert stage.head is not None
        with torch.autocast("cpu", torch.bfloat16):
            signals = stage.head.signals(network, batch, needed)
            at = TrainingStep(batch, signals, network, lambda *_: {}, needed)
            terms = [term for objective in stage.objective for term in objective.loss(at).values()]
            sum(terms, torch.zeros(())).backward()
        optimizer.step()
        optimizer.zero_grad()

    return train


def long_stream(stream: TokenStream, folder: Path, tokens: int) -> TokenStream:
    """`stream`, repeated to one memory-mapped stream of at least `tokens` tokens in `folder`."""
    turns = -(-tokens // len(stream.tokens))
    folder.mkdir()
    starts = np.concatenate([stream.starts + turn * len(stream.tokens) for turn in range(turns)])
    with (folder / TOKENS).open("wb") as file:
        for _ in range(turns):
            file.write(stream.tokens.tobytes())
    (folder / STARTS).write_bytes(starts.tobytes())
    (folder / COUNTS).write_bytes((stream.counts * turns).tobytes())
    files = {name: {"bytes": (folder / name).stat().st_size, "sha256": ""} for name in (TOKENS, STARTS, COUNTS)}
    (folder / MANIFEST).write_text(json.dumps({"ids": str(stream.tokens.dtype), "files": files}))
    return TokenStream.open(folder)
