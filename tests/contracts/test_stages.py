"""Every part that a recipe names takes one real step: the loss is finite, and weights move.

A new recipe's parts are found by themselves; a part of no recipe is listed here, with the test that runs it.
"""

from __future__ import annotations

import math

import pytest
import torch

from pipelines.lineage.results import RESULT
from tests.contracts.families import EVERY, members
from tests.contracts.trials import Part, stages_that_try, tried, where_used
from tests.steps import ROOT

OF_DATASETS = ("task_families", "cleaning", "selections", "text_vectors")
"""Families that params.yaml names, and no recipe."""
OF_EXPORTS = "runtimes"
"""The family that `cursus export` chooses from, and no recipe."""
OF_EVALUATIONS = "attacks"
"""The family that an evaluation is made of; tests/pipelines/judging/attacks makes every one of them."""
OF_PROMOTIONS = "gate"
"""The family that params.yaml asks a promotion for; tests/pipelines/judging/gate has each of them both ways."""
OF_RECIPES = "claims"
"""The family that a recipe names for itself, and no stage; tests/pipelines/judging/claims judges each of them."""
ELSEWHERE: dict[Part, str] = {
    **{
        ("attention", name): "tests/reference/test_attention_patterns.py"
        for name in ("bidirectional", "left_to_right", "sequence_to_sequence", "within_documents")
    },
    **{("mixing", name): "tests/pipelines/parts/mixing/test_mixing.py" for name in ("annealed", "round_robin")},
    ("evaluations", "served_forms"): "tests/pipelines/judging/evaluations/test_served_forms.py",
    ("annotations", "aligned_states"): "tests/reference/test_clbt.py",
    ("annotations", "languages"): "tests/pipelines/training/test_channels.py",
    ("annotations", "lexicon"): "tests/pipelines/training/test_ranks.py",
    ("annotations", "natural_labels"): "tests/pipelines/training/test_made_labels.py",
    ("annotations", "vector_column"): "tests/pipelines/training/test_vector_channels.py",
    ("annotations", "word_column"): "tests/contracts/test_one_new_embedding.py",
    ("compressions", "low_rank_embeddings"): "tests/pipelines/training/test_low_rank_stages.py",
    ("compressions", "movement_pruning"): "tests/reference/test_movement.py",
    ("compressions", "static_int8"): "tests/pipelines/training/test_static_int8.py",
    ("corruptions", "dialogue_response"): "tests/reference/test_tod_bert.py",
    **{
        ("corruptions", name): "tests/pipelines/training/test_made_labels.py"
        for name in ("disfluencies", "natural_labels", "pseudo_words", "repeated_mention")
    },
    ("corruptions", "region_mask"): "tests/reference/test_vl_bert.py",
    ("corruptions", "restart_positions"): "tests/pipelines/training/test_document_texts.py",
    ("corruptions", "second_text"): "tests/pipelines/parts/corruptions/test_second_text.py",
    ("embeddings", "boxes"): "tests/pipelines/training/test_channel_embeddings.py",
    ("embeddings", "task_numbers"): "tests/reference/test_ernie2.py",
    ("embeddings", "hashed_words"): "tests/pipelines/parts/annotations/test_hashed_words.py",
    ("embeddings", "languages"): "tests/pipelines/training/test_ranks.py",
    **{("embeddings", name): "tests/reference/test_sentilare.py" for name in ("part_of_speech", "polarity")},
    ("embeddings", "table_cells"): "tests/reference/test_tapas.py",
    ("embeddings", "vectors"): "tests/pipelines/training/test_vector_channels.py",
    ("estimates", "arpa"): "tests/pipelines/parts/estimates/test_arpa.py",
    **{
        ("estimates", name): "tests/reference/test_crosslingual_static.py"
        for name in ("correlated_vectors", "projected_vectors")
    },
    ("estimates", "translation_prototypes"): "tests/reference/test_translation_senses.py",
    ("evaluations", "stage_effects"): "tests/pipelines/judging/evaluations/test_stage_effects.py",
    ("evaluations", "word_similarity"): "tests/pipelines/judging/evaluations/test_word_similarity.py",
    ("heads", "continuation"): "tests/pipelines/parts/heads/test_continuation.py",
    **{
        ("heads", name): "tests/reference/test_beam_search.py"
        for name in ("continuation_beams", "copied_decoder_beams", "text_to_text_beams")
    },
    ("heads", "paragraph_vector"): "tests/reference/test_paragraph_vectors.py",
    ("heads", "prototype_vector"): "tests/reference/test_word_prototypes.py",
    ("heads", "token_states"): "tests/reference/test_clbt.py",
    ("heads", "regression"): "tests/pipelines/parts/heads/test_regression_and_choice.py",
    ("objectives", "map_states"): "tests/reference/test_clbt.py",
    ("objectives", "response_selection"): "tests/reference/test_tod_bert.py",
    ("objectives", "squared_error"): "tests/pipelines/parts/heads/test_regression_and_choice.py",
    **{
        ("optimizers", name): "tests/pipelines/training/optimizer_jobs.py"
        for name in ("adafactor", "lamb", "sgd", "sparse_adam")
    },
    ("segmentations", "units"): "tests/pipelines/parts/segmentations/test_units.py",
    ("strategies", "state_map"): "tests/reference/test_clbt.py",
    ("strategies", "projected_attention"): "tests/pipelines/parts/strategies/test_loop.py",
    ("probes", "attention_relations"): "tests/pipelines/judging/probes/test_probe_stage.py",
    ("probes", "edge"): "tests/pipelines/judging/probes/test_probe_stage.py",
    ("probes", "structural"): "tests/pipelines/judging/probes/test_probe_stage.py",
    ("schedules", "polynomial"): "tests/pipelines/parts/schedules/test_schedules.py",
}
"""Parts that no recipe names → the test that runs them."""
TRIED = stages_that_try({part for part in where_used() if part[0] not in ("evaluations", "probes", "objectives")})


def test_every_part_is_run_by_a_recipe_or_by_a_test_that_is_named_here() -> None:
    # an architecture is what a backbone names, and its own tests read every one
    elsewhere = ("architectures", *OF_DATASETS, OF_EXPORTS, OF_EVALUATIONS, OF_PROMOTIONS, OF_RECIPES)
    unused = {part for part in EVERY if part[0] not in elsewhere} - set(where_used())
    assert unused == set(ELSEWHERE), "a part of no recipe is listed with the test that runs it, and no other part is"
    for (_, name), test in ELSEWHERE.items():
        assert name in (ROOT / test).read_text(encoding="utf-8"), f"{test} does not run {name}"


@pytest.mark.parametrize("name", sorted(set(TRIED.values())))
def test_a_stage_takes_a_step(name: str) -> None:
    done = tried(name)
    assert (done.folder / RESULT).exists() and (done.folder / "config.json").exists()
    assert all(bool(torch.isfinite(value).all()) for value in done.weights.values() if value.is_floating_point())
    if done.stage.trains:
        assert done.result.steps == 1 and math.isfinite(done.loss) and done.moved


@pytest.mark.parametrize("name", [name for name in members("objectives") if ("objectives", name) in where_used()])
def test_an_objective_alone_has_a_finite_loss_and_a_gradient(name: str) -> None:
    done = tried(where_used()["objectives", name], name)
    assert math.isfinite(done.loss) and done.loss != 0
    # without weight decay, only a weight with a gradient moves
    assert done.moved and all(bool(torch.isfinite(done.weights[key]).all()) for key in done.moved)
