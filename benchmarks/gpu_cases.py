"""BERT-base masked-LM on a GPU, built, checked and timed in one call: `python -m benchmarks.gpu_cases --out FOLDER`.

    make bench NAME=gpu                               rows of 128 and of 512 tokens, a record and the page
    python -m benchmarks.gpu_cases --out FOLDER       the same where little is installed; FOLDER/gpu_cases.json
    python -m benchmarks.gpu_cases --lengths 512 …    one of them
    python -m benchmarks.gpu_cases --tiny --out …     a tiny network on any device: only check that it runs

Requires torch, transformers, tokenizers, pyarrow, pandas, numpy and pydantic, and no data: its text is the
documentation in the installed packages. The comparison with transformers' Trainer requires accelerate; the record notes
when it is missing.

Ours: whole documents packed into rows, attention within documents by varlen_attn, masked positions gathered before the
vocabulary projection, a vocabulary padded to whole tiles, bf16 autocast, torch.compile, fused AdamW, rows read from a
memory map by workers into pinned memory. The Trainer: blocks as in run_mlm.py, bf16, sdpa, torch_compile, fused AdamW.
Both without dropout, which varlen_attn does not support.

FLOPs of a step, forward and both backward products: 3 · [2 T layers (4 h² + 2 h i) + 4 h layers Σ n² + 2 M (h² + h V)]
with T tokens in the rows including padding, documents of n tokens (the padding of a row counts as one document), M
predicted positions, hidden size h, inner size i, vocabulary size V.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import sysconfig
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.harness.device_step import CHECKED_STEPS, LEARNING_RATE, Ours, Prepared, agreement, wait_for
from benchmarks.harness.floor import Shape, products
from pipelines.lineage.disk import write_text_atomically

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerFast

    from pipelines.training.batches.token_stream import TokenStream

CASES = "gpu_cases.json"
LENGTHS = (128, 512)
RATE = 0.15
CHECKED_TOKENS = 2048
"""Tokens of a batch on which losses are compared: few, because the reference computes document by document."""


@dataclass(frozen=True)
class Size:
    """Size of the network, of the data and of the measurement."""

    layers: int
    hidden: int
    vocabulary: int
    step_tokens: int
    texts: int
    rounds: int
    steps: int
    """Steps per turn."""
    warm: int
    square: int
    """Side of the largest matrix product."""
    matmul_seconds: float


BASE = Size(12, 768, 30_522, 65_536, 60_000, 5, 20, 8, 8192, 5.0)
TINY = Size(2, 64, 1000, 1024, 400, 2, 2, 1, 256, 0.3)


def matmul(shape: Shape, device: torch.device, square: int, seconds: float) -> dict[str, float]:
    """TFLOP/s of the matrix products of a step's linear layers, in sequence, and of one large product."""
    import torch

    kind = torch.bfloat16 if device.type == "cuda" else torch.float32
    result = {}
    linear = [(one.m, one.k, one.n, one.times) for one in products(shape) if one.batch == 1]
    for name, work in {"matmul": linear, "square": [(square, square, square, 1)]}.items():
        pairs = [
            (torch.randn(m, k, device=device, dtype=kind), torch.randn(k, n, device=device, dtype=kind), times)
            for m, k, n, times in work
        ]
        done, begun = 0, 0.0
        for turn in range(10**6):
            if turn == 1:  # the first turn selects kernels
                wait_for(device)
                begun = time.perf_counter()
            for left, right, times in pairs:
                for _ in range(times):
                    left @ right
            done += turn > 0
            wait_for(device)
            if turn and time.perf_counter() - begun > seconds:
                break
        flops = sum(2 * m * k * n * times for m, k, n, times in work)
        result[name] = done * flops / (time.perf_counter() - begun) / 1e12
    return result


def documentation_of_packages(most: int) -> list[str]:
    """Documentation strings of the standard library and of installed packages, in an order that depends only on their
    files."""
    from pipelines.corpora.documentation.docstrings import read_documentation

    folders = [Path(sysconfig.get_path("stdlib")), Path(sysconfig.get_path("purelib"))]
    files = {str(path): path for folder in folders for path in sorted(folder.rglob("*.py"))[: most // 4]}
    return [text for text, _ in islice(read_documentation(files), most)]


def measured_case(
    size: Size, length: int, tokenizer: PreTrainedTokenizerFast, stream: TokenStream, work: Path, device: torch.device
) -> dict[str, Any]:
    """All figures for one row length."""
    import torch

    from benchmarks.peers.interleaved_trainer import InterleavedTrainer
    from pipelines.parts.backbones.transformer import Transformer
    from pipelines.parts.corruptions.token_mask import TokenMask
    from pipelines.parts.heads.masked_lm import MaskedLMHead
    from pipelines.parts.layouts.packed_documents import PackedDocuments
    from pipelines.training.batches.plain_text import PlainBatches

    rows, steps = size.step_tokens // length, size.warm + size.rounds * size.steps

    def prepared_rows(rows: int, steps: int) -> Prepared:
        shape: dict[str, Any] = {"rows": rows, "length": length, "steps": steps, "seed": 0}
        batches = PlainBatches(stream, tokenizer, PackedDocuments(), (TokenMask(rate=RATE),), **shape)
        return Prepared(batches, rows * (round(RATE * length) + 1))

    prepared = prepared_rows(rows, steps)
    backbone = Transformer(
        positions=512,
        dims={
            "hidden_size": size.hidden, "num_hidden_layers": size.layers, "num_attention_heads": size.hidden // 64 or 1,
            "intermediate_size": 4 * size.hidden, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
        },
    )  # fmt: skip
    torch.manual_seed(0)
    config = backbone.config(tokenizer, length)
    network = MaskedLMHead().build(config, None).train()
    network.to(device)
    begun = {name: value.detach().cpu().clone() for name, value in network.state_dict().items()}
    compiled = device.type == "cuda"
    equal = agreement(network, prepared_rows(max(2, CHECKED_TOKENS // length), CHECKED_STEPS), device, compiled)
    if compiled:
        torch.cuda.reset_peak_memory_stats()
    ours = Ours(network, prepared, device, compiled)
    ours.take(size.warm)
    memory = torch.cuda.max_memory_allocated() / 2**30 if compiled else None
    ours.waited = ours.squares = 0.0

    trainer = None
    if find_spec("accelerate") is not None:
        trainer = InterleavedTrainer(
            begun, config, tokenizer, stream, rows, length, RATE, LEARNING_RATE, work, compiled
        )
        trainer.take(size.warm)
    seconds: dict[str, list[float]] = {"ours": [], "trainer": []}
    for turn in range(size.rounds):
        for name in ("ours", "trainer")[:: 1 if turn % 2 == 0 else -1]:
            one = ours if name == "ours" else trainer
            if one is not None:
                seconds[name].append(one.take(size.steps))
    if trainer is not None:
        trainer.end()
    shape = Shape(
        size.layers,
        size.hidden,
        config.num_attention_heads,
        config.intermediate_size,
        config.vocab_size,
        rows,
        length,
        RATE,
    )
    floor = matmul(shape, device, size.square, size.matmul_seconds)
    taken = size.rounds * size.steps
    flops = step_flops(shape, ours.squares / taken, prepared.most)
    rates = {name: [size.steps * rows * length / one for one in taken_by] for name, taken_by in seconds.items()}
    achieved = flops * median(rates["ours"]) / (rows * length) / 1e12
    return {
        "tokens_a_second": {name: median(one) for name, one in rates.items() if one},
        "turns": rates,
        "ratio": median(a / b for a, b in zip(rates["ours"], rates["trainer"], strict=True)) if trainer else None,
        "tflops": achieved,
        "matmul_tflops": floor["matmul"],
        "square_matmul_tflops": floor["square"],
        "share_of_matmul": achieved / floor["matmul"],
        "data_share_of_step": ours.waited / sum(seconds["ours"]),
        "peak_memory_gib": memory,
        "padding_share": padding_share(prepared),
        "final_loss": {"ours": float(ours.curve[-1])} | ({"trainer": trainer.loss} if trainer else {}),
        "equal_loss": equal,
    }  # fmt: skip


def encoded(size: Size, texts: list[str], work: Path) -> tuple[PreTrainedTokenizerFast, TokenStream]:
    """A tokenizer trained on the texts, and their tokens in a memory-mapped file."""
    import pyarrow
    import pyarrow.parquet

    from pipelines.parts.tokenizers.wordpiece import WordPiece
    from pipelines.training.batches.token_shards import token_stream

    tokenizer = WordPiece(vocab_size=size.vocabulary).train(texts)
    table = work / "texts.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"text": texts}), table)
    return tokenizer, token_stream([table], tokenizer, None, None, work / "tokens")


def step_flops(shape: Shape, squares: float, predicted: int) -> float:
    """Floating-point operations of a step, by the formula in this module's docstring."""
    layer = 4 * shape.hidden**2 + 2 * shape.hidden * shape.inner
    linear = 2 * shape.tokens * shape.layers * layer
    scores = 4 * shape.hidden * shape.layers * squares
    vocabulary = 2 * predicted * (shape.hidden**2 + shape.hidden * shape.vocabulary)
    return 3 * (linear + scores + vocabulary)


def padding_share(prepared: Prepared) -> float:
    """Share of padding among the tokens of the first batches."""
    import numpy as np

    from pipelines.vocabulary import Field

    masks = [prepared.batches.batch(step)[Field.ATTENTION_MASK] for step in range(min(8, len(prepared)))]
    return float(1 - np.mean(masks))


def not_proven(cases: dict[str, dict[str, Any]], device: torch.device) -> list[str]:
    """Statements that this run does not support."""
    gaps = []
    if device.type != "cuda":
        gaps.append(
            "speed: there is no CUDA device; varlen_attn, bfloat16, torch.compile, pinned memory and peak memory were "
            "not measured, and ratios and shares are those of a CPU"
        )
    if find_spec("accelerate") is None:
        gaps.append("comparison with transformers' Trainer: accelerate is not installed")
    gaps += [
        f"{name}: losses differ more than is allowed" for name, one in cases.items() if not one["equal_loss"]["agrees"]
    ]
    return gaps


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help=f"folder of the record, {CASES}")
    parser.add_argument("--lengths", type=int, nargs="+", default=[*LENGTHS], help="tokens of a row")
    parser.add_argument("--tiny", action="store_true", help="only check that it runs, on any device")
    options = parser.parse_args(arguments)
    import torch
    import transformers

    begun = time.perf_counter()
    size = TINY if options.tiny else BASE
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device.type == "cpu" and not options.tiny:
        parser.error("there is no CUDA device; --tiny checks that the benchmark runs")
    torch.set_float32_matmul_precision("highest")
    texts = documentation_of_packages(size.texts)
    cases: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as work:
        tokenizer, stream = encoded(size, texts, Path(work))
        for length in options.lengths:
            cases[str(length)] = measured_case(size, length, tokenizer, stream, Path(work), device)
            record = {
                "name": "gpu", "what": (__doc__ or "").splitlines()[0], "tiny": options.tiny, "cases": cases,
                "device": torch.cuda.get_device_name() if device.type == "cuda" else platform.processor() or "cpu",
                "versions": {
                    "python": platform.python_version(), "torch": torch.__version__,
                    "transformers": transformers.__version__,
                },
                "not_proven": not_proven(cases, device), "date": datetime.now(UTC).isoformat(timespec="seconds"),
                "seconds": round(time.perf_counter() - begun, 1),
            }  # fmt: skip
            # after each case, so that a time limit does not lose the finished ones
            options.out.mkdir(parents=True, exist_ok=True)
            write_text_atomically(options.out / CASES, json.dumps(record, indent=1) + "\n")
    print(json.dumps(record, indent=1))
    return 0 if all(case["equal_loss"]["agrees"] for case in cases.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
