"""Speed of tokenising and packing text, compared with `datasets.map` and the same tokenizer."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from itertools import chain, islice
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.harness.benchmark import Benchmark, Setting, missing
from benchmarks.harness.record import Goal, Measured, Turn
from benchmarks.harness.turns import rate, ratio, take_turns, timed
from pipelines.corpora.documentation.docstrings import documentation
from pipelines.corpora.shards.tables import TEXTS, write_rows
from pipelines.parts.tokenizers.wordpiece import WordPiece
from pipelines.training.batches.reading_texts import read_beginning
from pipelines.training.batches.token_shards import token_stream

PROCESSES = 2
BLOCK = 128
SAMPLE = 3_000_000
"""Bytes of text that the tokenizer is trained on."""
PEER = "run_mlm.py's recipe"


class TokeniseAndPack(Benchmark):
    """Both start from the same Parquet table and an empty cache. Ours produces the memory-mapped stream that stages
    read, with its document starts, counts and digests."""

    name = "tokenise_and_pack"
    what = (
        "Text to packed tokens on disk, compared with the method of run_mlm.py (`datasets.map` to tokenise, and again "
        "to concatenate and cut into blocks of 128); the same tokenizer, two processes each, from a Parquet table and "
        "an empty cache."
    )
    goals: ClassVar[tuple[Goal, ...]] = (Goal(figure=f"against {PEER}", at_least=4.5),)

    def unavailable(self) -> str | None:
        return missing("datasets")

    def measure(self, setting: Setting) -> Measured:
        table = setting.work / "text.parquet"
        texts = islice(documentation("general"), 500 if setting.quick else None)
        write_rows(table, TEXTS, ((text, where, "docs") for text, where in texts))
        tokenizer = WordPiece(sample_bytes=SAMPLE).train(read_beginning([table], SAMPLE))
        size = sum(len(text.encode()) for text in read_beginning([table], 10**12)) / 1e6
        ways = {
            "cursus": lambda: turn(ours, table, tokenizer, size),
            PEER: lambda: turn(peer, table, tokenizer, size),
        }
        turns = take_turns(ways, 2 if setting.quick else 5)
        figures = [ratio(f"against {PEER}", turns["cursus"], turns[PEER], PEER)]
        return Measured(figures=(*figures, *(rate(name, taken, "MB/s") for name, taken in turns.items())), turns=turns)


def turn(make: Callable[[Path, Any, Path], int], table: Path, tokenizer: Any, size: float) -> Turn:
    """A turn over `size` megabytes of text, from an empty cache."""
    cache = Path(tempfile.mkdtemp(prefix="cursus-bench-"))

    def work() -> float:
        make(table, tokenizer, cache)
        return size

    try:
        return timed(work)
    finally:
        shutil.rmtree(cache)


def peer(table: Path, tokenizer: Any, cache: Path) -> int:
    """Number of tokens in the packed blocks of `datasets`."""
    import datasets

    datasets.disable_progress_bars()

    def tokenise(examples: dict[str, list[str]]) -> Any:
        return tokenizer(examples["text"], return_special_tokens_mask=True)

    def group(examples: dict[str, list[list[int]]]) -> dict[str, list[list[int]]]:
        joined = {name: list(chain(*values)) for name, values in examples.items()}
        total = len(joined["input_ids"]) // BLOCK * BLOCK
        return {name: [values[at : at + BLOCK] for at in range(0, total, BLOCK)] for name, values in joined.items()}

    raw = datasets.Dataset.from_parquet(str(table), cache_dir=str(cache), columns=["text"])
    tokens = raw.map(tokenise, batched=True, num_proc=PROCESSES, remove_columns=["text"])
    return len(tokens.map(group, batched=True, num_proc=PROCESSES)) * BLOCK


def ours(table: Path, tokenizer: Any, cache: Path) -> int:
    """Number of tokens in our stream."""
    return len(token_stream([table], tokenizer, None, None, cache, PROCESSES).tokens)
