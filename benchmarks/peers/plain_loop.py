"""A network of transformers in the loop that its documentation shows: `python -m benchmarks.peers.plain_loop ORDER`.

ORDER is JSON: the folder of the initial model, the Auto class that opens it, a file of rows with their labels, and
settings. The loop calls the network with labels, and nothing else: rows are read into memory before the first step.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.harness.gate import Gate


def main(order: Path) -> int:
    """Train until the measurement ends."""
    import torch
    import transformers

    from pipelines.parts.architectures import Architecture

    settings = json.loads(order.read_bytes())
    gate = Gate()
    torch.set_num_threads(settings["threads"])
    for architecture in Architecture.all():  # those that transformers lacks
        architecture.register()
    auto = getattr(transformers, settings["network"])
    network: Any = auto.from_pretrained(settings["model"], trust_remote_code=False).train()
    if settings["compiled"]:
        network = torch.compile(network)
    batches = read_rows(Path(settings["rows"]))
    optimizer = torch.optim.AdamW(
        network.parameters(), lr=settings["lr"], weight_decay=settings["weight_decay"], fused=True
    )
    for step in range(sys.maxsize):
        gate.step()
        with torch.autocast("cpu", torch.bfloat16, enabled=settings["bfloat16"]):
            loss = network(**batches[step % len(batches)]).loss
        loss.backward()
        if settings["clip"]:
            torch.nn.utils.clip_grad_norm_(network.parameters(), settings["clip"])
        optimizer.step()
        optimizer.zero_grad()
    return 0


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The arguments of the network at each step."""
    import numpy as np
    import torch

    batches: dict[int, dict[str, Any]] = {}
    with np.load(path) as arrays:
        for key, values in arrays.items():
            name, step = key.split()
            batches.setdefault(int(step), {})[name] = torch.from_numpy(values)
    return [batches[step] for step in sorted(batches)]


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
