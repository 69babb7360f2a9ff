"""What does not fit after training with rounded weights is refused at load, with the order that works."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipelines.recipe.mistakes import check_refusal, refusal
from tests.pipelines.recipe.recipe_texts import labelled
from tests.steps import library_of


def trained(compression: str) -> str:
    """A stage that trains with `compression`."""
    return (
        "  rounded: {kind: compress, start: answer, corpus: task, head: sequence_classification, "
        f"objective: cross_entropy, strategy: full, compression: {compression}, budget: {{epochs: 1, length: 64}}}}"
    )


def compressed(compression: str, start: str = "rounded") -> str:
    """A stage that compresses, and does not train."""
    return (
        f"  later: {{kind: compress, start: {start}, corpus: task, head: sequence_classification, "
        f"compression: {compression}, budget: {{tokens: 0, length: 64}}}}"
    )


PRUNED = "{}: after rounded_training no matrix is left that it knows; apply {} before rounded_training"
STORED = "{}: after rounded_training no matrix is left that it knows; store the trained bits by integer_codes with bits"


@pytest.mark.parametrize(
    ("later", "says"),
    [
        ("magnitude_pruning", PRUNED.format("magnitude_pruning", "magnitude_pruning")),
        ("global_magnitude_pruning", PRUNED.format("global_magnitude_pruning", "global_magnitude_pruning")),
        ("rounded_training", "rounded_training: the weights train with rounding already, and do so in all later"),
        ("sparse_storage", STORED.format("sparse_storage")),
        ("group_quantization", STORED.format("group_quantization")),
    ],
)
def test_what_knows_no_rounded_matrix_is_refused(later: str, says: str, tmp_path: Path) -> None:
    message = refusal(tmp_path, "meeting", labelled(trained("rounded_training"), compressed(later)))
    check_refusal(message, (f"stages.later.compression: {says}",))


def test_stages_between_change_nothing_of_it(tmp_path: Path) -> None:
    tuned = "  tuned: {like: answer, start: rounded}"
    stages = trained("rounded_training"), tuned, compressed("sparse_storage", start="tuned")
    message = refusal(tmp_path, "meeting", labelled(*stages))
    check_refusal(message, (f"stages.later.compression: {STORED.format('sparse_storage')}",))


def test_in_one_stage_it_is_refused_too(tmp_path: Path) -> None:
    message = refusal(tmp_path, "meeting", labelled(trained("[rounded_training, magnitude_pruning]")))
    check_refusal(message, ("stages.rounded.compression: ", PRUNED.format("magnitude_pruning", "magnitude_pruning")))


@pytest.mark.parametrize(
    "stages",
    [
        (trained("[magnitude_pruning, rounded_training]"), compressed("{name: integer_codes, bits: trained}")),
        (trained("rounded_training"), compressed("[magnitude_pruning, sparse_storage]", start="answer")),
    ],
    ids=["pruned before", "of the stage before"],
)
def test_the_order_that_a_refusal_names_works(stages: tuple[str, str], tmp_path: Path) -> None:
    assert library_of(tmp_path, meeting=labelled(*stages)).load("meeting").stages["later"].compression
