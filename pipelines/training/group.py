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

    from pipelines.job import Runtime

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
