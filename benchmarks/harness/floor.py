"""The matmul floor: only the matrix products of a training step, repeated, in turns with training itself.

    python -m benchmarks.harness.floor FILE        FILE holds a `Shape` as JSON and the number of threads

It counts the products that no implementation of a post- or pre-norm encoder with a masked-LM head can avoid: the four
projections of each layer, both feed-forward matrices and the two products of attention, the head's dense layer and its
vocabulary projection at the predicted positions; each forward and in both backward forms (gradient of the input, and of
the weights or the other operand). Tensors are allocated once, so that no turn includes page faults.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple


@dataclass(frozen=True)
class Shape:
    """Shape of an encoder and of its batch."""

    layers: int
    hidden: int
    heads: int
    inner: int
    """Inner size of the feed-forward layers."""
    vocabulary: int
    rows: int
    length: int
    """Tokens in a row."""
    predicted: float
    """Share of the tokens for which vocabulary scores are computed."""

    @property
    def tokens(self) -> int:
        return self.rows * self.length


class Product(NamedTuple):
    """[batch, m, k] times [batch, k, n]."""

    batch: int
    m: int
    k: int
    n: int
    times: int = 1
    """Number of occurrences in a forward pass."""


def products(shape: Shape) -> list[Product]:
    """The products of a step's forward pass."""
    each = shape.hidden // shape.heads
    chosen = round(shape.tokens * shape.predicted)
    return [
        Product(1, shape.tokens, shape.hidden, shape.hidden, 4 * shape.layers),
        Product(1, shape.tokens, shape.hidden, shape.inner, shape.layers),
        Product(1, shape.tokens, shape.inner, shape.hidden, shape.layers),
        Product(shape.rows * shape.heads, shape.length, each, shape.length, shape.layers),
        Product(shape.rows * shape.heads, shape.length, shape.length, each, shape.layers),
        Product(1, chosen, shape.hidden, shape.hidden),
        Product(1, chosen, shape.hidden, shape.vocabulary),
    ]


def flops(shape: Shape) -> int:
    """Floating-point operations of a step's products, forward and both backward ones."""
    return 3 * sum(2 * one.batch * one.m * one.k * one.n * one.times for one in products(shape))


def write_order(path: Path, shape: Shape, threads: int) -> Path:
    """Write the process's settings to `path`."""
    path.write_text(json.dumps({"shape": asdict(shape), "threads": threads}), encoding="utf-8")
    return path


def main(order: Path) -> int:
    """Compute steps until the measurement ends."""
    import torch

    from benchmarks.harness.gate import Gate

    settings = json.loads(order.read_bytes())
    torch.set_num_threads(settings["threads"])
    work: list[tuple[int, tuple[Any, ...]]] = []
    for one in products(Shape(**settings["shape"])):
        shapes = ((one.batch, one.m, one.k), (one.batch, one.k, one.n), (one.batch, one.m, one.n))
        tensors = [torch.randn(shape, dtype=torch.bfloat16) for shape in shapes]
        if one.batch == 1:
            tensors = [tensor[0] for tensor in tensors]
        work.append((one.times, (*tensors, *(torch.empty_like(tensor) for tensor in tensors))))
    gate = Gate()
    with torch.inference_mode():
        while True:
            gate.step()
            for times, (left, right, out, to_left, to_right, product) in work:
                multiply = torch.mm if left.ndim == 2 else torch.bmm
                for _ in range(times):
                    multiply(left, right, out=product)
                    multiply(out, right.mT, out=to_left)
                    multiply(left.mT, out, out=to_right)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
