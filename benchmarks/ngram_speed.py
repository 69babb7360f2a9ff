"""Speed of estimating n-grams from tokens, and of looking them up."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch

from benchmarks.harness.benchmark import Benchmark, Setting
from benchmarks.harness.record import Goal, Measured
from benchmarks.harness.turns import Turns, rate, take_turns, timed
from pipelines.corpora.documentation.docstrings import documentation
from pipelines.corpora.engines.work import run_units
from pipelines.corpora.shards.tables import TEXTS, write_rows
from pipelines.networks.ngram import NgramConfig, NgramModel
from pipelines.parts.estimates import CountingUnit, TokenFile, Workspace
from pipelines.parts.estimates.kneser_ney import KneserNey
from pipelines.parts.tokenizers.words import Words
from pipelines.training.batches.reading_texts import read_beginning
from pipelines.training.batches.special_tokens import end_of_document
from pipelines.training.batches.token_shards import token_stream
from pipelines.training.batches.token_stream import TOKENS

ORDERS = (3, 5)
ROW = 256
"""Tokens of a row that is looked up, as in `perplexity`."""
ROWS = 4096


class NgramSpeed(Benchmark):
    """Both start from the memory-mapped tokens that stages read. A look-up is the log-probability of a token after
    those before it; half of the documents that are looked up were not counted."""

    name = "ngram_speed"
    what = (
        "Interpolated modified Kneser-Ney of order 3 and 5 over 20,000 words: megabytes of text a second from tokens "
        "to tables, and millions of n-grams that are looked up in a second, back-off included, on as many threads."
    )
    goals: ClassVar[tuple[Goal, ...]] = tuple(
        goal
        for order in ORDERS
        for goal in (
            Goal(figure=f"estimation, order {order}", at_least=5, unit="MB/s"),
            Goal(figure=f"queries, order {order}", at_least=1, unit="M n-grams/s"),
        )
    )

    def measure(self, setting: Setting) -> Measured:
        table = setting.work / "text.parquet"
        texts = islice(documentation("general"), 2000 if setting.quick else None)
        write_rows(table, TEXTS, ((text, where, "docs") for text, where in texts))
        tokenizer = Words(vocab_size=20_000, min_count=2).train(read_beginning([table], 20_000_000))
        stream = token_stream([table], tokenizer, None, None, setting.work / "cache", setting.threads)
        megabytes = sum(len(text.encode()) for text in read_beginning([table], 10**12)) / 1e6
        end, ids = end_of_document(tokenizer), stream.tokens
        half = int(np.flatnonzero(ids[: len(ids) // 2] == end)[-1]) + 1
        counted = setting.work / "half.bin"
        ids[:half].tofile(counted)
        whole = TokenFile(stream.folder / TOKENS, ids.dtype.name, tuple(stream.counts.tolist()), end)
        first = TokenFile(
            counted, ids.dtype.name, tuple(np.bincount(ids[:half], minlength=len(tokenizer)).tolist()), end
        )
        rows = min(ROWS, (len(ids) - ROW) // ROW)
        begins = np.linspace(0, len(ids) - ROW, rows).astype(np.int64)
        looked_up = torch.from_numpy(np.stack([ids[begin : begin + ROW] for begin in begins]).astype(np.int64))
        rounds, figures = 2 if setting.quick else 5, []
        turns: Turns = {}
        torch.set_num_threads(setting.threads)
        for order in ORDERS:
            model = model_of(first, order, setting)

            def estimation(order: int = order) -> float:
                shutil.rmtree(setting.work / "tables", ignore_errors=True)
                estimated(whole, order, setting.work / "tables", setting.threads)
                return megabytes

            def queries(model: NgramModel = model) -> float:
                with torch.inference_mode():
                    model.token_log_probs(looked_up)
                return looked_up.numel() / 1e6

            ways = {
                f"estimation, order {order}": lambda work=estimation: timed(work),
                f"queries, order {order}": lambda work=queries: timed(work),
            }
            taken = take_turns(ways, rounds)
            turns |= taken
            units = dict(zip(ways, ("MB/s", "M n-grams/s"), strict=True))
            figures += [rate(name, taken[name], unit) for name, unit in units.items()]
        return Measured(figures=tuple(figures), turns=turns)


def estimated(text: TokenFile, order: int, folder: Path, processes: int) -> tuple[NgramConfig, dict[str, np.ndarray]]:
    """The configuration and the tables of an n-gram model of `text`, as files below `folder`."""

    def run(units: Sequence[CountingUnit], home: Path) -> Sequence[Path]:
        return run_units(units, home, processes)

    folder.mkdir()
    config = NgramConfig(vocab_size=text.vocabulary_size, order=order)
    return config, KneserNey().weights(text, config, Workspace(folder, run))


def model_of(text: TokenFile, order: int, setting: Setting) -> NgramModel:
    """A model of `text`."""
    config, tables = estimated(text, order, setting.work / f"model-{order}", setting.threads)
    model = NgramModel(config)
    model.load_state_dict({name: torch.from_numpy(values) for name, values in tables.items()}, assign=True)
    return model
