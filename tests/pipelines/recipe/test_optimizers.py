"""What a recipe may say of its optimizer: nothing, AdamW's keys, or another one with keys of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.errors import RecipeError
from pipelines.recipe.schema import Stage
from tests.pipelines.recipe.recipe_texts import STATIC, written
from tests.steps import library_of

GENERAL = "    optimizer: {lr: 2.0e-3, betas: [0.9, 0.95], clip: 0.5}"
DOMAIN = "  domain: {kind: adapt_domain, start: general, corpus: domain, optimizer: "
CLASSIFY = (
    "  classify: {kind: finetune, start: general, corpus: task, head: sequence_classification, "
    "objective: cross_entropy, budget: {epochs: 1, length: 32}, "
)


def stages(folder: Path, *more: str, **parts: str) -> dict[str, Stage]:
    return library_of(folder, meeting=written(*more, **parts)).load("meeting").stages


def test_without_a_name_it_is_adamw_whose_dump_has_none(tmp_path: Path) -> None:
    optimizer = stages(tmp_path, GENERAL)["general"].optimizer
    assert optimizer.name == "adamw"
    assert optimizer.model_dump(mode="json") == {
        "lr": 2e-3,
        "weight_decay": 0.01,
        "clip": 0.5,
        "precision": "auto",
        "betas": [0.9, 0.95],
    }
    assert Stage.model_validate(stages(tmp_path)["general"].model_dump()).optimizer.name == "adamw"


@pytest.mark.parametrize(
    ("says", "inherits"),
    [
        ("{lr: 1.0e-3}", {"lr": 1e-3, "betas": [0.9, 0.95], "clip": 0.5}),
        ("adamw", {"lr": 2e-3, "betas": [0.9, 0.95], "clip": 0.5}),
        ("{name: lamb}", {"name": "lamb", "lr": 2e-3, "betas": [0.9, 0.999], "clip": 0.5}),
        ("lamb", {"name": "lamb", "lr": 2e-3, "betas": [0.9, 0.999], "clip": 0.5}),
        ("{name: adafactor, lr: 0.01}", {"name": "adafactor", "lr": 0.01, "clip": 0.5, "decay": -0.8}),
    ],
)
def test_it_is_inherited_key_by_key_and_across_names_in_what_all_have(
    says: str, inherits: dict[str, object], tmp_path: Path
) -> None:
    told = stages(tmp_path, GENERAL, DOMAIN + says + "}")["domain"].optimizer.model_dump(mode="json")
    assert {key: told.get(key) for key in inherits} == inherits


def test_a_name_is_inherited_too_and_can_be_taken_back(tmp_path: Path) -> None:
    made = stages(
        tmp_path,
        "    optimizer: {name: sgd, lr: 0.5, momentum: 0.9}",
        DOMAIN + "{lr: 0.25}}",
        "  back: {kind: adapt_domain, start: domain, corpus: domain, optimizer: {name: adamw}}",
    )
    assert made["domain"].optimizer.model_dump(mode="json")["momentum"] == 0.9
    assert (made["domain"].optimizer.name, made["domain"].optimizer.lr) == ("sgd", 0.25)
    assert (made["back"].optimizer.name, made["back"].optimizer.lr) == ("adamw", 0.25)


def test_a_variant_may_name_another_one(tmp_path: Path) -> None:
    library = library_of(
        tmp_path, meeting=written(GENERAL, "variants:", "  factored: {general: {optimizer: adafactor}}")
    )
    optimizer = library.load("meeting", ["factored"]).stages["general"].optimizer
    assert (optimizer.name, optimizer.lr, optimizer.clip) == ("adafactor", 2e-3, 0.5)


@pytest.mark.parametrize(
    ("says", "told"),
    [
        ("{name: sgd, betas: [0.9, 0.95]}", ("optimizer 'sgd' has no key 'betas'", "momentum")),
        ("{betass: [0.9, 0.95]}", ("optimizer 'adamw' has no key 'betass'", "Did you mean 'betas'?")),
        ("{name: adafacto}", ("no optimizer is called 'adafacto'", "Did you mean 'adafactor'?")),
        ("{name: lamb, lr: 0}", ("optimizer 'lamb', lr", "greater than 0")),
        ("sparse_adam", ("sparse gradients needs a backbone that is static", "word_vectors")),
        ("{name: sgd, sparse: true}", ("sgd with sparse gradients", "static")),
        ("{name: adagrad, sparse: true, weight_decay: 0.1}", ("optimizer 'adagrad'", "set weight_decay: 0")),
    ],
)
def test_what_does_not_fit_is_refused_with_file_and_line(says: str, told: tuple[str, ...], tmp_path: Path) -> None:
    with pytest.raises(RecipeError) as error:
        stages(tmp_path, f"    optimizer: {says}")
    message = str(error.value)
    assert "meeting.yaml:16" in message and "optimizer" in message and all(one in message for one in told), message


def test_a_strategy_with_an_adamw_of_its_own_takes_no_other(tmp_path: Path) -> None:
    made = stages(tmp_path, CLASSIFY + "strategy: recadam, optimizer: {lr: 1.0e-3}}")
    assert made["classify"].optimizer.name == "adamw"
    with pytest.raises(RecipeError, match=r"meeting.yaml:16: .*recadam brings an AdamW of its own.*lamb; use adamw"):
        stages(tmp_path, CLASSIFY + "strategy: recadam, optimizer: lamb}")


def test_tables_of_word_vectors_may_have_sparse_gradients(tmp_path: Path) -> None:
    parts = {**STATIC, "corruption": "[context_windows, negative_samples]", "head": "noise_prediction"}
    parts["objective"] = "negative_sampling"
    for says in ("sparse_adam", "{name: sgd, lr: 0.025, sparse: true}", "{name: adagrad, sparse: true}"):
        made = stages(tmp_path, f"    optimizer: {says}", **parts)["general"].optimizer
        assert made.sparse_gradients and made.weight_decay == 0
    with pytest.raises(RecipeError, match="sparse_adam gives tables sparse gradients, but strategy l2_to_start pulls"):
        text = written("    optimizer: sparse_adam", **parts).replace("strategy: full", "strategy: [full, l2_to_start]")
        library_of(tmp_path, meeting=text).load("meeting")
