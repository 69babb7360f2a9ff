"""Collective operations among the ranks that train together. With a single rank, each returns its argument."""

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

TIMEOUT = timedelta(minutes=30)
"""How long a rank waits for the others: rank 0 may have a corpus to tokenise."""


@contextmanager
def initialized(runtime: Runtime, rendezvous: Path | None = None) -> Iterator[None]:
    """Initialise the process group of `runtime.ranks` ranks for the duration of a `with` block.

    RANK and WORLD_SIZE are read from the environment; the rendezvous is MASTER_ADDR or the file `rendezvous`. A group
    that exists already (Ray creates its own) is used as it is. Does nothing for a single rank.
    """
    import torch
    from torch import distributed

    if runtime.ranks == 1:
        yield
        return
    if runtime.accelerator == "gpu":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    created = not distributed.is_initialized()
    if created:
        distributed.init_process_group(
            "cpu:gloo,cuda:nccl" if runtime.accelerator == "gpu" else "gloo",
            init_method="env://" if rendezvous is None else rendezvous.absolute().as_uri(),
            rank=int(os.environ["RANK"]),
            world_size=int(os.environ["WORLD_SIZE"]),
            timeout=TIMEOUT,
        )
    if distributed.get_world_size() != runtime.ranks:
        raise RuntimeError(f"{distributed.get_world_size()} ranks were started for a job of {runtime.ranks}")
    try:
        yield
    finally:
        if created:
            distributed.destroy_process_group()


def rank() -> int:
    """Number of this rank, from 0."""
    from torch import distributed

    return distributed.get_rank() if distributed.is_available() and distributed.is_initialized() else 0


def world_size() -> int:
    """Number of ranks."""
    from torch import distributed

    return distributed.get_world_size() if distributed.is_available() and distributed.is_initialized() else 1


def rank_zero_first(make: Callable[[], T]) -> T:
    """Call `make` on rank 0, then on all others, so that files it creates are created once and reused by the other
    ranks."""
    from torch import distributed

    if world_size() == 1:
        return make()
    created = make() if rank() == 0 else None
    distributed.barrier()
    return created if created is not None else make()


def all_reduce_sum(values: Tensor) -> Tensor:
    """Sum `values` over all ranks; every rank gets the sum."""
    from torch import distributed

    if world_size() > 1:
        values = values.clone()
        distributed.all_reduce(values)
    return values


def broadcast_from_first(value: T) -> T:
    """Broadcast `value` from rank 0 to all ranks."""
    from torch import distributed

    if world_size() == 1:
        return value
    values = [value]
    distributed.broadcast_object_list(values)
    return values[0]


def all_gather(value: T) -> list[T]:
    """Gather `value` of all ranks on every rank, in the order of ranks."""
    from torch import distributed

    if world_size() == 1:
        return [value]
    values: list[T | None] = [None] * world_size()
    distributed.all_gather_object(values, value)
    return values  # type: ignore[return-value]  # every item has been filled


def all_gather_rows(rows: Tensor) -> Tensor:
    """Gather the rows [R, …] of all ranks, in the order of ranks: [sum of R, …]. R may differ between ranks.

    Where every rank computes the same function of the result, the gradient of this rank's rows is the sum over the
    ranks of the functions' gradients, as in one process that holds all rows.
    """
    import torch
    from torch import distributed

    sizes = all_gather(len(rows))
    longest = max(sizes)
    padded = rows.new_zeros((longest, *rows.shape[1:]))
    padded[: len(rows)] = rows.detach()
    received = [torch.empty_like(padded) for _ in sizes]
    distributed.all_gather(received, padded)
    parts = [part[:size] for part, size in zip(received, sizes, strict=True)]
    # the rows of other ranks have no gradient here; the other ranks compute the same function of this rank's rows
    parts[rank()] = rows if not rows.requires_grad else rows.detach() + (rows - rows.detach()) * len(sizes)
    return torch.cat(parts)
