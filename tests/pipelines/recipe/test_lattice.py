"""The lattice of a recipe: all subsets, one tree of prefixes, the recipe's own stages where it has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.errors import RecipeError
from pipelines.judging.evaluations.stage_effects import StageEffectsEvaluation
from pipelines.lineage.provenance import DataSource
from pipelines.recipe.lattice import LATTICE, lattice_of
from pipelines.recipe.load import Library
from pipelines.recipe.plan import plan
from pipelines.recipe.schema import Recipe
from pipelines.recipe.starts import Untrained
from tests.steps import RECIPES, library_of

REGIME = Library(RECIPES).load("regime")


def effects(recipe: Recipe) -> StageEffectsEvaluation:
    found = recipe.stages[LATTICE].suite[0]
    assert isinstance(found, StageEffectsEvaluation)
    return found


def test_every_subset_is_fine_tuned_once_over_shared_prefixes() -> None:
    recipe = lattice_of(REGIME, seeds=3)
    paths = {path.through: path.stage for path in effects(recipe).paths}
    assert len(paths) == 16
    for through, name in paths.items():
        start = recipe.stages[name].start
        walked: list[str] = []
        while isinstance(start, str):
            walked.append(start)
            start = recipe.stages[start].start
        assert len(walked) == len(through)
        assert isinstance(start, Untrained) == (through[:1] != ("vectors",))
    plain = [name for name, stage in recipe.stages.items() if stage.kind.reads_plain_text]
    assert len(plain) == 15, "vectors, two of general, four of domain, eight of task: a prefix is trained once"


def test_what_the_recipe_fine_tunes_itself_keeps_its_settings_and_its_models() -> None:
    recipe = lattice_of(REGIME, seeds=3)
    paths = {path.through: path.stage for path in effects(recipe).paths}
    assert paths[()] == "scratch" and paths["vectors", "general", "domain"] == "from_domain"
    assert paths["vectors", "general", "domain", "task"] == "classify"
    digests = {
        name: DataSource(digest=name, path=name)
        for name in ("general", "domain", "task_text", "train", "validation", "test", "general_heldout")
    }
    library = Library(RECIPES)
    own = {step.label: step.fingerprint for step in plan(REGIME, library, digests).steps}
    ours = {step.label: step.fingerprint for step in plan(recipe, library, digests).steps}
    for name in ("vectors", "general", "domain", "task", "classify@2", "scratch@0", "from_general@1"):
        assert ours[name] == own[name], "in the store already after a run of the recipe"
    assert recipe.stages["scratch"].optimizer.lr == REGIME.stages["scratch"].optimizer.lr
    assert recipe.stages["classify_domain_only"].optimizer.lr == REGIME.stages["classify"].optimizer.lr


def test_sizes_are_the_same_paths_with_fewer_labels() -> None:
    recipe = lattice_of(REGIME, seeds=2, sizes=[10, 50])
    found = effects(recipe)
    assert found.sizes == [10, 50, None]
    assert len(found.paths) == 48
    assert recipe.stages["scratch_10"].budget.labelled == 10
    assert recipe.stages["scratch_10"].start == recipe.stages["scratch"].start
    assert len([name for name, stage in recipe.stages.items() if stage.kind.reads_plain_text]) == 15


def test_one_seed_is_refused_with_the_reason() -> None:
    with pytest.raises(RecipeError, match="needs at least two seeds"):
        lattice_of(REGIME, seeds=1)


def test_a_recipe_without_stages_before_fine_tuning_is_refused(tmp_path: Path) -> None:
    text = "stages:\n  general: {kind: pretrain, corpus: general, tokenizer: wordpiece, backbone: transformer,\n"
    text += "            head: masked_lm, corruption: token_mask, objective: masked_lm,\n"
    text += "            strategy: full, budget: {tokens: 1000}}\n"
    with pytest.raises(RecipeError, match="no stage whose effect could be measured"):
        lattice_of(library_of(tmp_path, alone=text).load("alone"))
    with pytest.raises(RecipeError, match="'clasify' is not a fine-tuned stage.*Did you mean 'classify'"):
        lattice_of(REGIME, finetuned="clasify")


def test_effects_need_every_path() -> None:
    paths = [{"stage": "a", "through": []}, {"stage": "b", "through": ["general"]}]
    assert StageEffectsEvaluation.model_validate({"factors": ["general"], "paths": paths}).sizes == [None]
    with pytest.raises(ValueError, match="no path goes through general"):
        StageEffectsEvaluation.model_validate(
            {"factors": ["general", "task"], "paths": [*paths, {"stage": "c", "through": ["task"]}]}
        )
    with pytest.raises(ValueError, match="given twice"):
        StageEffectsEvaluation.model_validate({"factors": ["general"], "paths": [*paths, paths[0]]})


def test_a_lattice_measures_one_task_of_its_own_name(tmp_path: Path) -> None:
    """A stage of several lines is refused unless another fine-tunes one task, which then all models are judged on."""
    line = "{corpus: stsb, head: regression, objective: squared_error}"
    text = (
        "stages:\n"
        "  general: {kind: pretrain, corpus: general, tokenizer: wordpiece, backbone: transformer, head: masked_lm,\n"
        "            corruption: token_mask, objective: masked_lm, strategy: full, budget: {tokens: 1000}}\n"
        "  share: {kind: finetune, start: general, strategy: full, budget: {epochs: 1},\n"
        f"          lines: {{stsb: {line}, again: {line}}}}}\n"
    )
    with pytest.raises(RecipeError, match="'share' trains stsb, again together, and a lattice measures one task"):
        lattice_of(library_of(tmp_path, several=text).load("several"))
    alone = "  alone: {kind: finetune, start: general, strategy: full, budget: {epochs: 1}, corpus: stsb,\n"
    alone += "          head: regression, objective: squared_error}\n"
    recipe = lattice_of(library_of(tmp_path, both=text + alone).load("both"), seeds=2)
    assert [path.through for path in effects(recipe).paths] == [(), ("general",)]
    assert recipe.stages[LATTICE].corpus == ("stsb",)
    with pytest.raises(RecipeError, match="no fine-tuned stage .* continue those of another recipe.*`cursus lattice"):
        lattice_of(Library(RECIPES).load("mt_dnn"))
