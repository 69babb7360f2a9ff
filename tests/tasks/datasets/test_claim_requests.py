"""Every shipped claim can be measured on the datasets that it names."""

from __future__ import annotations

import pytest

from pipelines.recipe.claims import measurements
from tasks.datasets.claim_requests import ClaimRequest
from tests.steps import ROOT, SHIPPED, shipped


@pytest.mark.parametrize("recipe", sorted(SHIPPED.names()))
def test_a_judge_records_the_figure_of_every_claim_on_its_datasets(recipe: str) -> None:
    for label in shipped(recipe).claims:
        assert ClaimRequest.resolve(ROOT, f"{recipe}/{label}").parts


def test_a_claim_may_be_about_a_task_that_its_stages_were_not_trained_on() -> None:
    recipe = shipped("supervised_pretraining")
    (part,) = set(measurements(recipe, recipe.claims["more_general"]).values())
    assert (part.task, set(part.stages)) == ("task", {"language_model", "labelled"})
