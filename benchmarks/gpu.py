"""BERT-base masked-LM on a GPU, compared with transformers' Trainer and with a matmul of the same shapes."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from benchmarks.gpu_cases import CASES, LENGTHS, main
from benchmarks.harness.benchmark import Benchmark, Setting
from benchmarks.harness.record import Figure, Goal, Measured

TRAINER = "HF Trainer (bf16, SDPA, compiled)"


class Gpu(Benchmark):
    """What `benchmarks.gpu_cases` measures, as one benchmark among the others."""

    name = "gpu"
    what = (
        "Masked-LM pre-training of BERT-base on a GPU, 65,536 tokens per step in rows of 128 and of 512, without "
        "dropout, bfloat16: the parts of a stage in a loop of their own, compared with transformers' Trainer and with "
        "a matmul of the same shapes."
    )
    slow = True
    goals: ClassVar[tuple[Goal, ...]] = tuple(
        goal
        for length in LENGTHS
        for goal in (
            Goal(figure=f"{length} tokens: of the matmul", at_least=0.45, unit=""),
            Goal(figure=f"{length} tokens: against {TRAINER}", at_least=2),
        )
    )

    def unavailable(self) -> str | None:
        import torch

        return None if torch.cuda.is_available() else "there is no CUDA device"

    def measure(self, setting: Setting) -> Measured:
        main(["--out", str(setting.work), *(["--tiny", "--lengths", "128"] if setting.quick else [])])
        return summary(json.loads((setting.work / CASES).read_bytes()))


def summary(record: dict[str, Any]) -> Measured:
    """The figures of all cases, and what they do not prove."""
    figures: list[Figure] = []
    for length, case in record["cases"].items():
        figures.append(Figure(name=f"{length} tokens: of the matmul", value=case["share_of_matmul"], unit=""))
        if case["ratio"] is not None:
            ratios = [ours / other for ours, other in zip(case["turns"]["ours"], case["turns"]["trainer"], strict=True)]
            figures.append(
                Figure(
                    name=f"{length} tokens: against {TRAINER}", value=case["ratio"], low=min(ratios), high=max(ratios)
                )
            )
        figures += [
            Figure(name=f"{length} tokens: {who}", value=rate, unit="tokens/s")
            for who, rate in case["tokens_a_second"].items()
        ]
        if case["peak_memory_gib"] is not None:
            figures.append(Figure(name=f"{length} tokens: peak memory", value=case["peak_memory_gib"], unit="GiB"))
    return Measured(figures=tuple(figures), notes=(f"on {record['device']}", *record["not_proven"]))
