"""Speed and memory of estimating an n-gram model, compared with KenLM's lmplz."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from benchmarks.harness.benchmark import Benchmark, Setting
from benchmarks.harness.memory import sampled
from benchmarks.harness.record import Figure, Goal, Measured, Turn
from benchmarks.harness.turns import rate, ratio, take_turns, timed
from pipelines.corpora.documentation.docstrings import documentation
from pipelines.corpora.engines.work import run_units
from pipelines.corpora.shards.tables import TEXTS, write_rows
from pipelines.networks.ngram import NgramConfig
from pipelines.parts.estimates import CountingUnit, TokenFile, Workspace
from pipelines.parts.estimates.kneser_ney import KneserNey
from pipelines.parts.tokenizers.gpt_bpe import GPTBPE
from pipelines.training.batches.reading_texts import read_beginning
from pipelines.training.batches.special_tokens import end_of_document
from pipelines.training.batches.token_shards import token_stream
from pipelines.training.batches.token_stream import TOKENS, TokenStream

if TYPE_CHECKING:
    pass

ORDER = 5
VOCABULARY = 4096
PEER = "lmplz"
PEER_MEMORY = "1G"
"""Its sort buffers: its documentation advises as much as there is, and ours has less."""


class NgramCounts(Benchmark):
    """Both estimate interpolated modified Kneser-Ney of order 5, of the same tokens: ours from the memory-mapped stream
    that stages read, lmplz from a file of their numbers. lmplz writes its binary tables (`--intermediate`), which is
    faster than ARPA."""

    name = "ngram_counts"
    what = (
        "Interpolated modified Kneser-Ney of order 5 from tokens on disk to tables on disk, compared with KenLM's "
        "lmplz, of the same tokens (4,096 byte pairs)."
    )
    goals: ClassVar[tuple[Goal, ...]] = (Goal(figure="memory", at_most=2048, unit="MiB"),)

    def unavailable(self) -> str | None:
        if shutil.which(PEER) is None:
            return f"{PEER} not on PATH: build it from github.com/kpu/kenlm with Boost"
        return None

    def measure(self, setting: Setting) -> Measured:
        table, most = setting.work / "text.parquet", 2_000_000 if setting.quick else 30_000_000
        texts = islice(documentation("general"), 2000 if setting.quick else None)
        write_rows(table, TEXTS, ((text, where, "docs") for text, where in texts))
        tokenizer = GPTBPE(vocab_size=VOCABULARY).train(read_beginning([table], 20_000_000))
        stream = token_stream([table], tokenizer, None, most, setting.work / "cache", setting.threads)
        numbers = setting.work / "numbers.txt"
        write_numbers(stream, numbers)
        folder = str(stream.folder)
        command = [sys.executable, "-m", __name__, folder, str(end_of_document(tokenizer)), str(setting.threads)]
        ours, peer = setting.work / "ours", setting.work / "peer"
        tokens, memory = float(len(stream.tokens)), list[int]()
        ways = {
            "cursus": lambda: turn([*command, str(ours)], ours, tokens, memory),
            PEER: lambda: turn(peer_command(numbers, peer), peer, tokens, []),
        }
        turns = take_turns(ways, 2 if setting.quick else 5)
        figures = [ratio(f"against {PEER}", turns["cursus"], turns[PEER], PEER)]
        figures += [rate(name, taken, "M tokens/s", 1e6) for name, taken in turns.items()]
        figures.append(Figure(name="memory", value=max(memory) / 2**20, unit="MiB"))
        return Measured(figures=tuple(figures), turns=turns)


def turn(command: Sequence[str], folder: Path, tokens: float, memory: list[int]) -> Turn:
    """A turn of `command`, which writes into the empty `folder`; appends its largest memory to `memory`."""
    folder.mkdir()

    def work() -> float:
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        memory.append(max(sampled(process), default=0))
        if process.wait():
            raise RuntimeError(f"{command[0]} ended with {process.returncode}")
        return tokens

    try:
        return timed(work)
    finally:
        shutil.rmtree(folder)


def peer_command(numbers: Path, folder: Path) -> list[str]:
    """lmplz at its fastest."""
    options = {"-o": str(ORDER), "-S": PEER_MEMORY, "-T": f"{folder}/", "--text": str(numbers)}
    return [PEER, *(word for pair in options.items() for word in pair), "--discount_fallback", "--intermediate",
            str(folder / "tables")]  # fmt: skip


def write_numbers(stream: TokenStream, path: Path) -> None:
    """Write each document as a line of its token ids."""
    words = np.asarray([str(number) for number in range(len(stream.counts))], dtype=object)
    with path.open("w", encoding="ascii") as file:
        for begin, end in zip(stream.starts, [*stream.starts[1:], len(stream.tokens)], strict=True):
            file.write(" ".join(words[stream.tokens[begin : end - 1]]) + "\n")


def estimate(folder: Path, end: int, processes: int, out: Path) -> None:
    """Estimate a model of the stream in `folder`; its tables are files below `out`."""

    def run(units: Sequence[CountingUnit], home: Path) -> Sequence[Path]:
        return run_units(units, home, processes)

    stream = TokenStream.open(folder)
    text = TokenFile(folder / TOKENS, stream.tokens.dtype.name, tuple(stream.counts.tolist()), end)
    KneserNey().weights(text, NgramConfig(vocab_size=VOCABULARY, order=ORDER), Workspace(out, run))


if __name__ == "__main__":
    estimate(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
