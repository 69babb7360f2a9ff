"""An optimised masked-LM step for a GPU, and an unoptimised reference, which must have the same loss."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch import Tensor
    from transformers import PreTrainedModel

    from pipelines.training.batches.plain_text import PlainBatches

LEARNING_RATE = 1e-4
BOUNDS = 256
"""Document bounds are padded to a multiple of this, so that a compiled step has few shapes."""
CHECKED_STEPS = 10
AGREES = {"float32": 1e-4, "bfloat16": 3e-2}
"""Largest allowed relative difference between the losses of the optimised step and of the reference."""


@dataclass(frozen=True)
class Inputs:
    """A batch in the form of the compiled step."""

    ids: Tensor
    positions: Tensor
    documents: Any
    masked: Tensor
    """int64 [M], positions of masked tokens, padded with 0 to the same M in every batch."""
    labels: Tensor
    """int64 [M], padded with IGNORED."""
    squares: int
    """Σ n² over the documents."""

    def moved(self, device: torch.device) -> Inputs:
        def to(one: Tensor) -> Tensor:
            return one.to(device, non_blocking=True)

        from pipelines.networks.document_attention import Documents

        documents = self.documents
        if device.type == "cuda":
            documents = Documents(to(documents.ids), to(documents.bounds))
        return replace(
            self, ids=to(self.ids), positions=to(self.positions), documents=documents,
            masked=to(self.masked), labels=to(self.labels),
        )  # fmt: skip


class Prepared:
    """The batches of a stage in order, as `Inputs` with nearly constant shapes. Loaded by worker processes."""

    def __init__(self, batches: PlainBatches, most: int) -> None:
        self.batches, self.most = batches, most

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, step: int) -> Inputs:
        import torch
        from torch.nn.functional import pad

        from pipelines.networks.document_attention import documents_of
        from pipelines.networks.vocabulary_loss import IGNORED
        from pipelines.vocabulary import Field

        batch = self.batches[step]
        documents = documents_of(batch[Field.DOCUMENT_STARTS])
        assert documents.bounds is not None
        squares = int((documents.bounds.diff().long() ** 2).sum())
        more = -len(documents.bounds) % BOUNDS
        documents = documents._replace(bounds=pad(documents.bounds, (0, more), value=int(documents.bounds[-1])))
        lacking = self.most - len(batch[Field.MASKED_POSITIONS])
        return Inputs(
            batch[Field.INPUT_IDS],
            batch[Field.POSITION_IDS],
            documents,
            pad(batch[Field.MASKED_POSITIONS], (0, lacking)),
            pad(batch[Field.MASKED_LABELS].to(torch.int64), (0, lacking), value=IGNORED),
            squares,
        )


def pinned(inputs: Inputs) -> Inputs:
    """Move to pinned memory, for asynchronous copies to the device."""
    documents = inputs.documents._replace(
        ids=inputs.documents.ids.pin_memory(), bounds=inputs.documents.bounds.pin_memory()
    )
    parts = {name: getattr(inputs, name).pin_memory() for name in ("ids", "positions", "masked", "labels")}
    return replace(inputs, documents=documents, **parts)


def loss_of(network: PreTrainedModel, inputs: Inputs) -> Tensor:
    """Mean cross-entropy of the masked tokens."""
    documents = inputs.documents
    return _loss(network, inputs.ids, inputs.positions, documents, inputs.masked, inputs.labels)


def compiled_loss() -> Callable[[PreTrainedModel, Inputs], Tensor]:
    """`loss_of`, compiled as a full graph: a graph break is an error."""
    import torch

    from pipelines.networks.document_attention import Documents

    def flat(network: PreTrainedModel, numbers: Tensor, bounds: Tensor, *others: Tensor) -> Tensor:
        ids, positions, masked, labels = others
        return _loss(network, ids, positions, Documents(numbers, bounds), masked, labels)

    compiled = torch.compile(flat, fullgraph=True)

    def loss(network: PreTrainedModel, inputs: Inputs) -> Tensor:
        documents = inputs.documents
        others = (inputs.ids, inputs.positions, inputs.masked, inputs.labels)
        result: Tensor = compiled(network, documents.ids, documents.bounds, *others)
        return result

    return loss


def _loss(
    network: PreTrainedModel, ids: Tensor, positions: Tensor, documents: Any, masked: Tensor, labels: Tensor
) -> Tensor:
    from torch.nn.functional import cross_entropy

    top = network.base_model(input_ids=ids, position_ids=positions, documents=documents).last_hidden_state
    scores: Tensor = network.get_submodule("cls.predictions")(top.flatten(0, 1).index_select(0, masked))
    return cross_entropy(scores.float(), labels)


def plain_loss(network: PreTrainedModel, inputs: Inputs) -> Tensor:
    """The reference loss without optimisations: each document separately, in float32, vocabulary scores at all
    positions."""
    import torch
    from torch.nn.functional import cross_entropy

    bounds = inputs.documents.bounds.unique().tolist()
    ids, positions = inputs.ids.flatten(), inputs.positions.flatten()
    top = torch.cat([
        network.base_model(input_ids=ids[None, a:b], position_ids=positions[None, a:b]).last_hidden_state[0]
        for a, b in pairwise(bounds)
    ])  # fmt: skip
    scores: Tensor = network.get_submodule("cls.predictions")(top)
    counted = inputs.labels >= 0
    return cross_entropy(scores[inputs.masked[counted]], inputs.labels[counted])


class Ours:
    """The measured training loop."""

    def __init__(self, network: PreTrainedModel, prepared: Prepared, device: torch.device, compiled: bool) -> None:
        import torch
        from torch.utils.data import DataLoader

        self.network, self.device = network, device
        self.optimizer = torch.optim.AdamW(network.parameters(), lr=LEARNING_RATE, fused=True)
        self.loss = compiled_loss() if compiled else loss_of
        workers: dict[str, Any] = (
            {"num_workers": 6, "prefetch_factor": 8, "multiprocessing_context": "fork"} if device.type == "cuda" else {}
        )
        dataset: Any = prepared  # a sequence is all that a loader needs of a Dataset
        loader: Any = DataLoader(dataset, batch_size=None, sampler=range(len(prepared)), **workers)
        self._batches: Iterator[Inputs] = iter(loader)
        self.waited = self.squares = 0.0
        self.curve: list[Tensor] = []

    def take(self, steps: int) -> float:
        """Train for `steps` steps; returns the seconds they took."""
        import torch

        begun = time.perf_counter()
        for _ in range(steps):
            wait_begun = time.perf_counter()
            inputs = next(self._batches)
            if self.device.type == "cuda":
                inputs = pinned(inputs)
            self.waited += time.perf_counter() - wait_begun
            self.squares += inputs.squares
            with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.device.type == "cuda"):
                loss = self.loss(self.network, inputs.moved(self.device))
            torch.autograd.backward(loss)
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
            self.curve.append(loss.detach())
        wait_for(self.device)
        return time.perf_counter() - begun


def wait_for(device: torch.device) -> None:
    """Wait until the device has finished all queued work."""
    import torch

    if device.type == "cuda":
        torch.cuda.synchronize()


def agreement(network: PreTrainedModel, prepared: Prepared, device: torch.device, compiled: bool) -> dict[str, Any]:
    """Train from the same weights on the same batches, optimised and unoptimised, and compare the losses."""
    import torch

    from pipelines.networks.document_attention import attend_within_documents

    start = {name: value.clone() for name, value in network.state_dict().items()}
    curves = []
    for tricks in (True, False):
        network.load_state_dict(start)
        if tricks:
            attend_within_documents(network)
        else:
            network.set_attn_implementation("eager")
        chosen = (compiled_loss() if compiled else loss_of) if tricks else plain_loss
        optimizer = torch.optim.AdamW(network.parameters(), lr=LEARNING_RATE)
        curve = []
        for step in range(CHECKED_STEPS):
            inputs = prepared[step].moved(device)
            half = tricks and device.type == "cuda"
            with torch.autocast(device.type, dtype=torch.bfloat16, enabled=half):
                loss = chosen(network, inputs)
            torch.autograd.backward(loss)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            curve.append(float(loss.detach()))
        curves.append(curve)
    network.load_state_dict(start)
    attend_within_documents(network)
    torch.compiler.reset()  # other shapes follow, and a second shape would be compiled with dynamic sizes
    kind = "bfloat16" if device.type == "cuda" else "float32"
    difference = max(abs(a - b) / b for a, b in zip(*curves, strict=True))
    return {
        "what": "losses of the same batches from the same weights: optimised, and document by document in float32",
        "with": curves[0], "without": curves[1], "largest_relative_difference": difference,
        "allowed": AGREES[kind], "agrees": difference <= AGREES[kind],
    }  # fmt: skip
