"""A new head may begin with the weights of its backbone; one that continues keeps its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from pipelines.lineage.provenance import DataSource
from pipelines.models.opening import line_network, open_tokenizer
from pipelines.parts.heads.masked_lm import MaskedLMHead
from pipelines.parts.heads.sequence_classification import SequenceClassificationHead
from pipelines.recipe.lines import line_views
from pipelines.recipe.schema import Stage
from pipelines.recipe.starts import Checkpoint, Untrained
from pipelines.training.assembly.assemble import assemble
from tests.pipelines.training.conftest import Trained
from tests.pipelines.training.lines_recipe import RECIPE
from tests.pipelines.training.test_assemble import LABELS
from tests.steps import library_of, plan_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class WordsAsClasses(SequenceClassificationHead):
    """The scores of the classes begin with the vectors of the first tokens of the vocabulary."""

    def begin(self, network: PreTrainedModel) -> None:
        classifier = network.get_submodule("classifier")
        assert isinstance(classifier, nn.Linear)
        with torch.no_grad():
            classifier.weight.copy_(words(network)[: len(classifier.weight)])


class BiasFromWords(MaskedLMHead):
    """The bias of a token begins with the norm of its vector."""

    def begin(self, network: PreTrainedModel) -> None:
        with torch.no_grad():
            network.get_parameter("cls.predictions.bias").copy_(words(network).norm(dim=1))


def words(network: PreTrainedModel) -> torch.Tensor:
    table = network.base_model.get_input_embeddings()
    assert isinstance(table, nn.Embedding)
    return table.weight.detach()


def begun(stage: Stage, start: Path | None, folder: Path, labels: Any = LABELS) -> PreTrainedModel:
    torch.manual_seed(1)
    return assemble(stage, start, open_tokenizer(folder), {"": labels}, "cpu")


def starts_with_words(network: PreTrainedModel) -> bool:
    return torch.equal(network.get_parameter("classifier.weight"), words(network)[:3])


def test_a_new_head_begins_when_the_weights_of_its_backbone_are_in_place(trained: Trained) -> None:
    folder, stage = trained.folder("general"), trained.plan.recipe.stages["classify"]
    stage = stage.model_copy(update={"head": WordsAsClasses()})
    network = begun(stage, folder, folder)
    saved = load_file(folder / "model.safetensors")["bert.embeddings.word_embeddings.weight"]
    assert starts_with_words(network) and torch.equal(words(network), saved)


def test_without_weights_to_start_from_it_begins_with_the_random_ones(trained: Trained) -> None:
    folder, stage = trained.folder("general"), trained.plan.recipe.stages["classify"]
    stage = stage.model_copy(update={"head": WordsAsClasses()})
    for start, at in ((None, None), (Untrained(untrained="general"), folder)):
        network = begun(stage.model_copy(update={"start": start}), at, folder)
        saved = load_file(folder / "model.safetensors")["bert.embeddings.word_embeddings.weight"]
        assert starts_with_words(network) and not torch.equal(words(network), saved)


def test_a_head_that_continues_keeps_its_weights(trained: Trained) -> None:
    folder, stage = trained.folder("classify"), trained.plan.recipe.stages["classify"]
    stage = stage.model_copy(update={"head": WordsAsClasses(), "start": "classify"})
    network = begun(stage, folder, folder)
    saved = load_file(folder / "model.safetensors")["classifier.weight"]
    assert torch.equal(network.get_parameter("classifier.weight"), saved) and not starts_with_words(network)


@pytest.mark.parametrize("bare", [True, False])
def test_a_head_that_a_checkpoint_brings_does_not_begin(bare: bool, trained: Trained, tmp_path: Path) -> None:
    folder = trained.folder("general")
    weights = load_file(folder / "model.safetensors")
    kept = {name: value for name, value in weights.items() if not bare or name.startswith("bert.")}
    save_file(kept, tmp_path / "model.safetensors", metadata={"format": "pt"})
    (tmp_path / "config.json").write_bytes((folder / "config.json").read_bytes())
    start = Checkpoint(checkpoint=str(tmp_path), missing=("cls.*",) if bare else ())
    stage = trained.plan.recipe.stages["general"].model_copy(update={"head": BiasFromWords(), "start": start})
    bias = begun(stage, tmp_path, folder, None).get_parameter("cls.predictions.bias")
    brought = weights["cls.predictions.bias"]
    assert torch.equal(bias, words(begun(stage, tmp_path, folder, None)).norm(dim=1)) == bare
    assert torch.equal(bias, brought) != bare


def test_of_several_heads_only_the_new_ones_begin(
    trained: Trained, sources: dict[str, DataSource], tmp_path: Path
) -> None:
    stage = plan_of(library_of(tmp_path, lines=RECIPE), "lines", sources).recipe.stages["share"]
    heads = {"topic": WordsAsClasses(), "mlm": BiasFromWords()}
    lines = {
        name: line.model_copy(update={"head": heads[name]} if name in heads else {})
        for name, line in stage.lines.items()
    }
    stage = stage.model_copy(update={"lines": lines})
    tasks = {name: None if view.kind.reads_plain_text else LABELS for name, view in line_views(stage).items()}
    folder = trained.folder("general")
    network = assemble(stage, folder, open_tokenizer(folder), tasks, "cpu")
    assert starts_with_words(line_network(network, "topic")) and not starts_with_words(line_network(network, "again"))
    bias = line_network(network, "mlm").get_parameter("cls.predictions.bias")
    assert torch.equal(bias, load_file(folder / "model.safetensors")["cls.predictions.bias"]), "it continues"
