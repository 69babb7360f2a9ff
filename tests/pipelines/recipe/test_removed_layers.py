"""Layers are not removed where the options of a backbone name one by its number, or count others that would go too."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipelines.recipe.mistakes import check_refusal, refusal
from tests.pipelines.recipe.recipe_texts import labelled, written
from tests.steps import library_of

KNOWBERT = "{name: knowbert, num_hidden_layers: 6, after: 4}"
ERNIE = "{{name: ernie_thu, num_hidden_layers: {}, num_aggregators: {}}}"
AGGREGATED = "ernie_thu has {} layers over tokens and as many aggregators, which would go with them and still be"


def compressed(compression: str, *more: str, backbone: str) -> str:
    """A classifier over `backbone`, and a stage that compresses it."""
    small = (
        "  small: {kind: compress, start: answer, corpus: task, head: sequence_classification, teacher: answer, "
        f"strategy: full, compression: {compression}, objective: match_logits, budget: {{epochs: 1, length: 64}}}}"
    )
    return labelled(small, *more, general={"backbone": backbone, "head": "masked_lm_on_states"})


@pytest.mark.parametrize(
    ("compression", "backbone", "says"),
    [
        ("select_layers", KNOWBERT, "select_layers removes layers, and the knowledge attention of knowbert is after"),
        ("{name: select_layers, which: first}", KNOWBERT, "layer 4: of fewer layers that is another one, or none"),
        ("{name: layer_pruning, order: random}", KNOWBERT, "layer_pruning removes layers, and the knowledge attention"),
        ("select_layers", ERNIE.format(4, 4), AGGREGATED.format(4)),
        ("[{name: select_layers, share: 0.5}, select_layers]", ERNIE.format(6, 3), AGGREGATED.format(3)),
    ],
)
def test_layers_that_others_are_counted_by_stay(compression: str, backbone: str, says: str, tmp_path: Path) -> None:
    message = refusal(tmp_path, "meeting", compressed(compression, backbone=backbone))
    check_refusal(message, ("stages.small.compression: ", says, "; pre-train a network "))


def test_a_top_layer_that_is_unlike_the_others_stays(tmp_path: Path) -> None:
    removed = "{name: select_layers, which: first}"
    small = f"  small: {{kind: adapt_domain, start: general, corpus: domain, compression: {removed}}}"
    recipe = written(
        small, tokenizer="spelled_words", layout="{name: windows, framed: false}", backbone="transformer_bilm",
        corruption="[]", head="bidirectional_lm", objective="bidirectional_lm",
    )  # fmt: skip
    says = "stages.small.compression: select_layers removes layers, and the top one of transformer_bilm alone ends in a"
    check_refusal(refusal(tmp_path, "meeting", recipe), (says,))


def test_the_layers_that_an_earlier_stage_has_left_are_those_that_count(tmp_path: Path) -> None:
    again = "  again: {like: small, start: small}"
    message = refusal(tmp_path, "meeting", compressed("select_layers", again, backbone=ERNIE.format(4, 2)))
    check_refusal(message, ("stages.again.compression: select_layers removes layers", AGGREGATED.format(2)))


@pytest.mark.parametrize(
    ("compression", "backbone"),
    [("{name: select_layers, share: 1.0}", KNOWBERT), ("select_layers", ERNIE.format(4, 3))],
    ids=["all layers stay", "another number of aggregators"],
)
def test_what_removes_nothing_that_is_counted_is_not_refused(compression: str, backbone: str, tmp_path: Path) -> None:
    recipe = compressed(compression, backbone=backbone)
    assert library_of(tmp_path, meeting=recipe).load("meeting").stages["small"].compression
