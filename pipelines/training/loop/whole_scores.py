"""The scores of a finished stage on all held-out examples, where its validations have read a sample of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from pipelines.lineage.results import EXAMPLES, SAMPLE
from pipelines.models.answering import BLOCK, CHARACTERS, answered
from pipelines.models.opening import line_network
from pipelines.task_families.excerpt import excerpts
from pipelines.training.activity import Activity
from pipelines.training.loop.inputs import VALIDATION, examples_of, lines_of
from pipelines.training.loop.validation import MEAN

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

    from pipelines.parts.heads import FeatureTokenizer
    from pipelines.recipe.job import Job
    from pipelines.task_families import Task


def whole_scores(
    job: Job,
    tasks: Mapping[str, Task | None],
    network: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    features: Sequence[FeatureTokenizer],
) -> dict[str, float]:
    """The scores of the finished `network` of a stage on all held-out examples, named as those of a validation; empty
    where its validations have read all of them.

    `tasks` are those of `validation_of`. The network is given back on the processor.
    """
    import torch

    jobs = {name: one for name, one in lines_of(job).items() if tasks[name] is not None}
    tables = {name: examples_of(one, VALIDATION) for name, one in jobs.items()}
    sampled = {name: min(len(tables[name]), one.stage.budget.validation) for name, one in jobs.items()}
    total = sum(map(len, tables.values()))
    if sum(sampled.values()) == total:
        return {}
    report, result, firsts = Activity(job.out), dict[str, float](), list[float]()
    network.to(torch.device("cuda" if job.runtime.accelerator == "gpu" else "cpu"))  # type: ignore[arg-type]
    network.eval()
    done = 0
    for name, one in jobs.items():
        task, stage = tasks[name], one.stage
        assert task is not None and stage.head is not None
        family, length = task.family, stage.budget.length
        statistics: list[NDArray[np.float64]] = []
        for block in excerpts(tables[name], BLOCK, CHARACTERS):
            of_line = line_network(network, name)
            answers = answered(of_line, stage.head, block, task, tokenizer, length, features, stage)
            statistics.append(family.statistics([family.gold(row) for row in block], answers, task.labels))
            done += len(block)
            report(f"validating on all examples: {done:,} of {total:,}")
        values = family.scores(np.concatenate(statistics))
        firsts.append(float(values[family.metrics[0]]))
        prefix = f"validation/{name}/" if name else "validation/"
        result |= {f"{prefix}{metric}": round(float(value), 6) for metric, value in values.items()}
    network.to(torch.device("cpu"))  # type: ignore[arg-type]  # transformers wraps `to` and loses its signature
    if "" not in jobs:
        result[MEAN] = round(sum(firsts) / len(firsts), 6)
    return result | {EXAMPLES: float(total), SAMPLE: float(sum(sampled.values()))}
