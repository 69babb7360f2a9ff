"""The network a stage starts from: every weight accounted for, dropout on, companions frozen."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import pytorch_lightning as lightning
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from pipelines.errors import RecipeError
from pipelines.models.opening import open_model, open_tokenizer
from pipelines.recipe.schema import Stage
from pipelines.recipe.starts import Checkpoint, Untrained
from pipelines.task_families import Task
from pipelines.task_families.text_classification import TextClassification
from pipelines.training.assembly.assemble import assemble, set_dropout
from pipelines.training.loop.module import StageModule
from pipelines.training.ranks.run import run
from tests.pipelines.training.conftest import Trained

LABELS = Task(TextClassification(), ("email", "unittest", "xml"))


@pytest.fixture
def folder(trained: Trained, tmp_path: Path) -> Path:
    """A copy of the pre-trained model, to be damaged."""
    copy = tmp_path / "model"
    shutil.copytree(trained.folder("general"), copy)
    return copy


def stage_of(trained: Trained, name: str, **changes: object) -> Stage:
    return trained.plan.recipe.stages[name].model_copy(update=changes)


def test_a_continued_stage_takes_every_weight(trained: Trained, folder: Path) -> None:
    stage = stage_of(trained, "general", start="general")
    network = assemble(stage, folder, open_tokenizer(folder), {"": None}, "cpu")
    saved = load_file(folder / "model.safetensors")
    assert all(torch.equal(value, network.state_dict()[name]) for name, value in saved.items())


def test_a_new_head_is_new_and_the_body_is_not(trained: Trained, folder: Path) -> None:
    stage = stage_of(trained, "classify")
    network = assemble(stage, folder, open_tokenizer(folder), {"": LABELS}, "cpu")
    saved = load_file(folder / "model.safetensors")
    body = {name for name in network.state_dict() if name.startswith(network.base_model_prefix + ".")}
    assert body and all(torch.equal(saved[name], network.state_dict()[name]) for name in body)
    assert network.classifier.out_features == 3 and network.config.id2label == dict(enumerate(LABELS.labels))


def test_from_scratch_takes_the_shape_and_none_of_the_weights(trained: Trained, folder: Path) -> None:
    stage = stage_of(trained, "classify", start=Untrained(untrained="general"))
    network = assemble(stage, folder, open_tokenizer(folder), {"": LABELS}, "cpu")
    saved = load_file(folder / "model.safetensors")
    name = "bert.encoder.layer.0.attention.self.query.weight"
    assert saved[name].shape == network.state_dict()[name].shape and not torch.equal(
        saved[name], network.state_dict()[name]
    )


def test_training_drops_out_and_companions_do_not(trained: Trained, tmp_path: Path) -> None:
    seen: list[tuple[bool, set[float], list[bool], bool]] = []

    class Spy(lightning.Callback):
        def on_train_batch_start(self, trainer: lightning.Trainer, module: StageModule, *_: object) -> None:
            rates = {m.p for m in module.network.modules() if isinstance(m, nn.Dropout)}
            training = all(m.training for m in module.network.modules())
            frozen = [
                not any(m.training for m in companion.network.modules())
                and not any(p.requires_grad for p in companion.network.parameters())
                for line in module.lines
                for companion in line.companions.values()
            ]
            inside = any("companions" in name for name in module.state_dict())
            seen.append((training, rates, frozen, inside))

    original = lightning.Trainer.__init__

    def with_spy(self: lightning.Trainer, **keywords: object) -> None:
        original(self, **{**keywords, "callbacks": [*keywords["callbacks"], Spy()]})  # type: ignore[dict-item, misc]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lightning.Trainer, "__init__", with_spy)
        run(trained.job("classify", tmp_path / "classify"))
        steps = len(seen)
        assert steps > 12, "validations lie between these steps"
        assert all(training and rates == {0.2} for training, rates, _, _ in seen)
        run(trained.job("small", tmp_path / "small"))
    assert len(seen) > steps
    assert all(training and frozen == [True] and not inside for training, _, frozen, inside in seen[steps:])


def test_a_companion_says_the_same_twice(trained: Trained) -> None:
    opened = open_model(trained.folder("classify"), "cpu")
    batch = {"input_ids": torch.randint(5, 500, (2, 16)), "attention_mask": torch.ones(2, 16, dtype=torch.int64)}
    assert opened.record.labels == LABELS.labels
    assert torch.equal(opened.network(**batch).logits, opened.network(**batch).logits)


def test_set_dropout_reaches_every_dropout(trained: Trained, folder: Path) -> None:
    network = assemble(stage_of(trained, "classify"), folder, open_tokenizer(folder), {"": LABELS}, "cpu")
    set_dropout(network, 0.37)
    assert {m.p for m in network.modules() if isinstance(m, nn.Dropout)} == {0.37}


@pytest.mark.parametrize("kind", ["missing", "unknown", "shape"])
def test_weights_that_do_not_match_are_named(kind: str, trained: Trained, folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    name = "bert.encoder.layer.1.output.dense.weight"
    if kind == "missing":
        del weights[name]
        says = f"missing in the file: {name}"
    elif kind == "unknown":
        weights["bert.encoder.layer.2.output.dense.weight"] = weights[name].clone()
        says = "unknown to the network: bert.encoder.layer.2.output.dense.weight"
    else:
        weights[name] = weights[name][:, :5].clone()
        says = rf"of another shape: {name} is \(32, 5\) in the file, \(32, 64\) in the network"
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    for stage in ("general", "classify"):
        with pytest.raises(RecipeError, match=f"its weights do not match.*{says}.*missing: .patterns."):
            assemble(stage_of(trained, stage, start="general"), folder, open_tokenizer(folder), {"": LABELS}, "cpu")


def test_a_foreign_checkpoint_may_lack_what_the_recipe_names(trained: Trained, folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    bare = {name.removeprefix("bert."): value for name, value in weights.items() if name.startswith("bert.")}
    save_file(bare, folder / "model.safetensors", metadata={"format": "pt"})
    named = Checkpoint(checkpoint=str(folder), missing=("cls.*",))
    network = assemble(stage_of(trained, "general", start=named), folder, open_tokenizer(folder), {"": None}, "cpu")
    body = "bert.encoder.layer.0.output.dense.weight"
    assert torch.equal(network.state_dict()[body], weights[body])
    with pytest.raises(RecipeError, match=r"missing in the file: cls\."):
        assemble(
            stage_of(trained, "general", start=Checkpoint(checkpoint=str(folder))),
            folder,
            open_tokenizer(folder),
            {"": None},
            "cpu",
        )


def test_a_pickle_is_refused_and_so_is_a_damaged_file(trained: Trained, folder: Path) -> None:
    stage = stage_of(trained, "general", start="general")
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(
        RecipeError, match="no model.safetensors; only safetensors are read .a pickled checkpoint can execute code"
    ):
        assemble(stage, folder, open_tokenizer(folder), {"": None}, "cpu")
    (folder / "model.safetensors").write_bytes(b"\x10" * 100)
    with pytest.raises(RecipeError, match="damaged or not a safetensors file"):
        assemble(stage, folder, open_tokenizer(folder), {"": None}, "cpu")


def test_what_does_not_fit_is_told(trained: Trained, folder: Path, tmp_path: Path) -> None:
    stage = stage_of(trained, "general", start="general")
    longer = stage.model_copy(update={"budget": stage.budget.model_copy(update={"length": 65})})
    with pytest.raises(RecipeError, match="budget.length: 65 tokens do not fit the 64 positions"):
        assemble(longer, folder, open_tokenizer(folder), {"": None}, "cpu")
    with pytest.raises(RecipeError, match="no tokenizer that transformers can open"):
        open_tokenizer(tmp_path)
    tokenizer = open_tokenizer(folder)
    tokenizer.add_tokens([f"new-{number}" for number in range(100)])
    with pytest.raises(RecipeError, match="the tokenizer has 612 tokens, but the network's vocabulary only 512"):
        assemble(stage, folder, tokenizer, [], "cpu")
