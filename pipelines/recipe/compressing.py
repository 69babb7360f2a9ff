"""Check that the compressions of a stage can follow what was done to the network before, and have the data they
need."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, runtime_checkable

from pipelines.networks.shape import NetworkShape
from pipelines.parts.compressions import Compression, Level
from pipelines.recipe.lines import line_views
from pipelines.recipe.problems import Problem
from pipelines.recipe.schema import Stage
from pipelines.recipe.starts import Checkpoint, Untrained


@runtime_checkable
class SuccessiveCompression(Protocol):
    """A compression that does not fit after all others."""

    def unfit_after(self, earlier: Sequence[Compression], *, complete: bool) -> str | None:
        """Why it does not fit a network of which `earlier` are the compressions before; None if it does. Unless they
        are `complete`, a checkpoint from elsewhere may have had more."""


@runtime_checkable
class PrecedingCompression(Protocol):
    """A compression after which not all others fit."""

    def unfit_before(self, later: Compression) -> str | None:
        """Why `later` does not fit a network that has this compression; None if it does."""


@runtime_checkable
class FixedLayers(Protocol):
    """A backbone whose layers cannot always be removed: another part of it names one by its number, or is counted with
    them, or they differ."""

    num_hidden_layers: int
    """Number of layers of a new network."""

    def unfit_for_fewer_layers(self, layers: int) -> str | None:
        """Why none of the `layers` that a network has by now can be removed; None if they can."""


def check_compression(stage: Stage, resolve: Callable[[str], Stage]) -> Problem | None:
    """First problem of a stage with compressions, or after a stage with some; None when there is none."""
    earlier = list(_earlier(stage, resolve))
    finished = next((one for one in earlier if one[1].level is Level.BITS), None)
    if finished is not None and (stage.trains or stage.compression):
        does = "trains" if stage.trains else f"applies {stage.compression[0].name}"
        return (
            "start",
            f"stage {finished[0]!r} stores its weights as they are served ({finished[1].name}), and this stage {does}: "
            "nothing trains or compresses such weights further; let it start from the stage before",
        )
    for position, compression in enumerate(stage.compression):
        before = [*(one for _, one in earlier), *stage.compression[:position]]
        if coarser := next((one for one in before if one.level > compression.level), None):
            return (
                "compression",
                f"{compression.name} would renumber or remove what {coarser.name} has changed; the order is layers, "
                f"widths, attention heads, single weights, bits or a sparse file: apply {compression.name} first",
            )
        if stored := next((one for one in stage.compression[:position] if one.level is Level.BITS), None):
            return (
                "compression",
                f"{stored.name} stores the weights as they are served, which {compression.name} cannot compress "
                "further; give each a stage of its own, with the same start",
            )
        if compression.level is Level.LAYERS and (extending := _modules_of_lines(stage, resolve)):
            return (
                "compression",
                f"{compression.name} removes layers, beside which strategy {extending} has modules of each line; "
                "compress first, and add them in a stage that starts from the smaller network",
            )
        if compression.level is Level.LAYERS and (exits := _head_of_layers(stage)):
            return (
                "compression",
                f"{compression.name} removes layers, and the head {exits} has a classifier after each of them; give "
                "that head to a stage that starts from the smaller network",
            )
        if compression.level is Level.LAYERS and (fixed := _fixed_layers(stage, position, resolve)):
            return "compression", f"{compression.name} removes layers, and {fixed}"
        if compression.level is Level.BITS and not compression.replaces_weights and stage.trains:
            return (
                "compression",
                f"{compression.name} comes after training: leave out the objective, or set budget: {{tokens: 0}} where "
                "the compression needs it",
            )
        for one in before:
            if isinstance(one, PrecedingCompression) and (unfit := one.unfit_before(compression)):
                return "compression", f"{compression.name}: {unfit}"
        if isinstance(compression, SuccessiveCompression) and (
            unfit := compression.unfit_after(before, complete=not _from_elsewhere(stage, resolve))
        ):
            return "compression", f"{compression.name}: {unfit}"
        if problem := _check_course(stage, compression) or _check_data(stage, compression):
            return problem
    return None


def _check_course(stage: Stage, compression: Compression) -> Problem | None:
    """Problem of a compression that is made in the course of the training; None when there is none."""
    if not compression.complete_after:
        return None
    if not stage.trains:
        return (
            "compression",
            f"{compression.name} is made in the course of the training, and this stage does not train; let it compress "
            "before the first step, or give the stage an objective and a strategy",
        )
    if stage.budget.patience is not None:
        return (
            "budget",
            f"patience: {compression.name} is complete after {compression.complete_after:.0%} of the steps, and early "
            "stopping might end before; leave patience out",
        )
    return None


def _check_data(stage: Stage, compression: Compression) -> Problem | None:
    """Problem of what a compression sees of the corpus; None when there is none."""
    if not compression.needs_calibration:
        return None
    for key, given in (("lines", stage.lines), ("features", stage.features)):
        if given:
            return key, f"{compression.name} measures one corpus with one head; give it a stage without {key}"
    if not stage.corpus:
        return "corpus", f"{compression.name} measures batches of the stage's corpus: name one, such as corpus: task"
    if stage.budget.calibration == 0:
        return (
            "budget",
            f"calibration: 0 batches are an empty calibration set, and {compression.name} measures the loss on one; "
            "give 1 or more",
        )
    if compression.needs_gradients and not stage.differentiated:
        return (
            "objective",
            f"{compression.name} differentiates the loss of the stage's objectives, and no objective here is without "
            "teacher or companion; add one, such as cross_entropy, and budget: {tokens: 0} where it is not to train",
        )
    return None


def _earlier(stage: Stage, resolve: Callable[[str], Stage]) -> Iterator[tuple[str, Compression]]:
    """The compressions of the stages that `stage` continues, each with the name of its stage, the first last."""
    for reference, parent in continued_stages(stage, resolve):
        yield from ((reference, one) for one in parent.compression)


def _from_elsewhere(stage: Stage, resolve: Callable[[str], Stage]) -> bool:
    """Whether the network of `stage` is a checkpoint, with whatever was done to it before."""
    return any(
        isinstance(one.start, Checkpoint) for one in (stage, *(one for _, one in continued_stages(stage, resolve)))
    )


def _modules_of_lines(stage: Stage, resolve: Callable[[str], Stage]) -> str | None:
    """Strategy that has added modules to the lines of `stage`, or of a stage that it continues; None for none."""
    own = [one.name for one in stage.strategy if one.extends_lines]
    before = [
        one.name for _, parent in continued_stages(stage, resolve) for one in parent.strategy if one.extends_lines
    ]
    return next(iter([*own, *before]), None)


def _head_of_layers(stage: Stage) -> str | None:
    """Name of a head of `stage` with weights for each layer of the backbone; None for none."""
    heads = (view.head for view in line_views(stage).values())
    return next((head.name for head in heads if head is not None and getattr(head, "skips_layers", False)), None)


def _fixed_layers(stage: Stage, position: int, resolve: Callable[[str], Stage]) -> str | None:
    """Why the compression at `position` cannot remove layers of the backbone; None if it can, or removes none."""
    backbone: object = stage.backbone
    if not isinstance(backbone, FixedLayers):
        return None
    parents = [parent for _, parent in continued_stages(stage, resolve)]
    shape = NetworkShape(layers=backbone.num_hidden_layers)
    for before in (*(one for parent in reversed(parents) for one in parent.compression), *stage.compression[:position]):
        shape = before.shape_after(shape)
    assert shape.layers is not None
    if stage.compression[position].shape_after(shape).layers == shape.layers:
        return None
    return backbone.unfit_for_fewer_layers(shape.layers)


def continued_stages(stage: Stage, resolve: Callable[[str], Stage], recipe: str = "") -> Iterator[tuple[str, Stage]]:
    """The stages that `stage` of `recipe` (empty: of the one that is checked) continues, with their references, the
    last first."""
    reference = _start_of(stage, recipe)
    while reference is not None:
        parent = resolve(reference)
        yield reference, parent
        reference = _start_of(parent, reference.rpartition("/")[0])


def _start_of(stage: Stage, recipe: str) -> str | None:
    """Reference to the stage that a stage of `recipe` (empty: of the one that is checked) continues; None for none."""
    start = stage.start.untrained if isinstance(stage.start, Untrained) else stage.start
    if not isinstance(start, str):
        return None
    return start if "/" in start or not recipe else f"{recipe}/{start}"
