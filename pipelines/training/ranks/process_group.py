"""The ranks that train together, as one of them sees them. Alone, everything here is a plain function of its argument."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from torch import Tensor

    from pipelines.recipe.job import Runtime

T = TypeVar("T")

PATIENCE = timedelta(minutes=30)
"""A rank waits so long for another: the first one may have a corpus to tokenise."""


@contextmanager
def joined(runtime: Runtime, meet: Path | None = None) -> Iterator[None]:
    """Be one of `runtime.ranks` ranks, which one the environment says; they meet at MASTER_ADDR, or in the file `meet`.

    Where a group exists already (Ray makes its own), that one is used. Alone, does nothing.
    """
    import torch
    from torch import distributed

    if runtime.ranks == 1:
        yield
        return
    if runtime.accelerator == "gpu":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    made = not distributed.is_initialized()
    if made:
        distributed.init_process_group(
            "cpu:gloo,cuda:nccl" if runtime.accelerator == "gpu" else "gloo",
            init_method="env://" if meet is None else meet.absolute().as_uri(),
            rank=int(os.environ["RANK"]),
            world_size=int(os.environ["WORLD_SIZE"]),
            timeout=PATIENCE,
        )
    if distributed.get_world_size() != runtime.ranks:
        raise RuntimeError(f"{distributed.get_world_size()} ranks were started for a job of {runtime.ranks}")
    try:
        yield
    finally:
        if made:
            distributed.destroy_process_group()


def rank() -> int:
    """Which of the ranks this is, from 0."""
    from torch import distributed

    return distributed.get_rank() if distributed.is_available() and distributed.is_initialized() else 0


def ranks() -> int:
    """How many there are."""
    from torch import distributed

    return distributed.get_world_size() if distributed.is_available() and distributed.is_initialized() else 1


def first_then_others(make: Callable[[], T]) -> T:
    """`make()` on the first rank, then on all others: what it leaves on disk is made once, and found by them."""
    from torch import distributed

    if ranks() == 1:
        return make()
    made = make() if rank() == 0 else None
    distributed.barrier()
    return made if made is not None else make()


def summed(values: Tensor) -> Tensor:
    """`values` summed over the ranks, on every rank."""
    from torch import distributed

    if ranks() > 1:
        values = values.clone()
        distributed.all_reduce(values)
    return values


def told_by_first(value: T) -> T:
    """What the first rank says, on every rank."""
    from torch import distributed

    if ranks() == 1:
        return value
    said = [value]
    distributed.broadcast_object_list(said)
    return said[0]


def everyones(value: T) -> list[T]:
    """What each rank says, in the order of ranks, on every rank."""
    from torch import distributed

    if ranks() == 1:
        return [value]
    said: list[T | None] = [None] * ranks()
    distributed.all_gather_object(said, value)
    return said  # type: ignore[return-value]  # every place has been filled


def gathered(rows: Tensor) -> Tensor:
    """[sum of R, …]: the rows [R, …] of every rank, in the order of ranks, which may differ in R.

    The gradient of what every rank computes alike from them arrives at this rank's rows, summed over the ranks as a function
    of all of them would have it.
    """
    import torch
    from torch import distributed

    sizes = everyones(len(rows))
    longest = max(sizes)
    padded = rows.new_zeros((longest, *rows.shape[1:]))
    padded[: len(rows)] = rows.detach()
    received = [torch.empty_like(padded) for _ in sizes]
    distributed.all_gather(received, padded)
    parts = [part[:size] for part, size in zip(received, sizes, strict=True)]
    # what others computed of their rows has no gradient here; what they do with these rows is the same as here, on each rank
    parts[rank()] = rows if not rows.requires_grad else rows.detach() + (rows - rows.detach()) * len(sizes)
    return torch.cat(parts)
