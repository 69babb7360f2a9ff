"""A stage's network, batches, objectives and optimizer in a bare loop: `python -m benchmarks.peers.bare_loop ORDER`.

ORDER holds a job that starts from a model. The loop has no logging, checkpoints, resumption, checks or early stopping.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from benchmarks.harness.gate import Gate


def train(order: Path, *, accelerated: bool) -> int:
    """Train until the measurement ends; `accelerated`: whether the network has a stage's accelerators."""
    import torch

    from pipelines.lineage.results import COMPILED
    from pipelines.models.opening import open_tokenizer
    from pipelines.parts.accelerators import installed_accelerators
    from pipelines.parts.objectives import TrainingStep
    from pipelines.recipe.job import Job
    from pipelines.training.assembly.assemble import assemble, set_dropout
    from pipelines.training.loop.inputs import batches_of
    from pipelines.vocabulary import Field

    job = Job.model_validate_json(order.read_bytes())
    stage, chosen = job.stage, job.stage.optimizer
    gate = Gate()
    torch.set_num_threads(job.runtime.threads)
    assert job.start is not None and stage.head is not None
    tokenizer = open_tokenizer(job.start)
    network = assemble(stage, job.start, tokenizer, {"": None}, job.runtime.accelerator)
    set_dropout(network, stage.dropout)
    for one in installed_accelerators() if accelerated else ():
        one.accelerate([network], (job.cache or job.out) / COMPILED)
    (batches,) = batches_of(job, {"": None}, tokenizer).lines
    matrices = [one for one in network.parameters() if one.ndim > 1]
    others = [one for one in network.parameters() if one.ndim <= 1]
    groups: list[dict[str, Any]] = [
        {"params": matrices, "weight_decay": chosen.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=chosen.lr, fused=True, **chosen.adamw_options() or {})
    rates = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: stage.schedule.factor(step, len(batches)))
    needed = frozenset().union(*(objective.needs_signals for objective in stage.objective))
    low = chosen.precision == "bf16-mixed"
    for fields in batches:
        gate.step()
        batch: dict[Field, Any] = {Field(name): value for name, value in fields.items()}
        with torch.autocast("cpu", torch.bfloat16, enabled=low):
            signals = stage.head.signals(network, batch, needed)
            step = TrainingStep(batch, signals, network, lambda *_: {}, needed, needed)
            terms = [term for objective in stage.objective for term in objective.loss(step).values()]
            loss: torch.Tensor = sum(terms, torch.zeros(()))
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(network.parameters(), chosen.clip or float("inf"))
        optimizer.step()
        rates.step()
        optimizer.zero_grad()
    gate.end()
    return 0


if __name__ == "__main__":
    # only the loop is to differ
    sys.exit(train(Path(sys.argv[1]), accelerated=True))
