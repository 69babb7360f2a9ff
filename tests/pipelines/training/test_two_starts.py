"""A stage continues the backbone of one stage and the head of another."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from pipelines.errors import RecipeError
from pipelines.lineage.provenance import DataSource
from pipelines.models.opening import open_model, open_tokenizer
from pipelines.parts.tokenizers.wordpiece import WordPiece
from pipelines.recipe.job import Job, Runtime
from pipelines.recipe.plan import Plan
from pipelines.training.assembly.assemble import assemble
from pipelines.training.loop.inputs import tasks_of
from pipelines.training.ranks.run import run
from tests.pipelines.training.conftest import Trained
from tests.pipelines.training.small_recipe import RECIPE
from tests.pipelines.training.test_resume_of_shapes import interrupted
from tests.small_corpus import documents
from tests.steps import job_of, library_of, plan_of

TWO = (
    RECIPE.partition("  small:")[0]
    + """\
  other:
    kind: adapt_domain
    start: general
    corpus: domain
    budget: {tokens: 2048}
  both:
    kind: finetune
    start: {backbone: other, head: classify}
    corpus: task
    head: sequence_classification
    objective: cross_entropy
    strategy: full
    optimizer: {lr: 1.0e-3, precision: 32-true}
    budget: {epochs: 1, batch_texts: 4, length: 48}
  words: {like: other, start: {backbone: classify, head: other}, objective: masked_lm}
"""
)


@pytest.fixture(scope="module")
def planned(
    trained: Trained, tables: dict[str, Path], sources: dict[str, DataSource], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Plan, dict[str, Path]]:
    """The plan, and the folders of the stages that others start from."""
    root = tmp_path_factory.mktemp("two")
    plan = plan_of(library_of(root, small=TWO), "small", sources)
    folders = {
        step.fingerprint: trained.folder(step.name) if step.name in ("general", "classify") else root / step.name
        for step in plan.steps
    }
    other = next(step for step in plan.steps if step.name == "other")
    run(job_of(other, folders, tables, root / "other"))
    return plan, folders


def job(planned: tuple[Plan, dict[str, Path]], stage: str, tables: dict[str, Path], out: Path) -> Job:
    step = next(step for step in planned[0].steps if step.name == stage)
    return job_of(step, planned[1], tables, out, Runtime(log_every=1, checkpoint_every=2))


def begun(one: Job) -> dict[str, Tensor]:
    assert one.start is not None
    torch.manual_seed(0)
    tokenizer = open_tokenizer(one.start)
    network = assemble(one.stage, one.start, tokenizer, tasks_of(one), "cpu", head_start=one.head_start)
    return dict(network.state_dict())


def test_the_backbone_is_of_one_stage_and_the_head_of_the_other(
    planned: tuple[Plan, dict[str, Path]], tables: dict[str, Path], tmp_path: Path
) -> None:
    both = job(planned, "both", tables, tmp_path)
    assert both.start is not None and both.head_start is not None and both.start != both.head_start
    backbone, head = (load_file(folder / "model.safetensors") for folder in (both.start, both.head_start))
    weights = begun(both)
    assert {name for name in weights if not name.startswith("bert.")} == {"classifier.weight", "classifier.bias"}
    for name, value in weights.items():
        assert torch.equal(value, (backbone if name.startswith("bert.") else head)[name]), name
    name = "bert.encoder.layer.0.output.dense.weight"
    assert not torch.equal(weights[name], head[name]), "the two differ"
    # a head over the vocabulary, whose projection is the table of the backbone
    words = begun(job(planned, "words", tables, tmp_path))
    transform = "cls.predictions.transform.dense.weight"
    assert torch.equal(words[transform], backbone[transform])
    assert torch.equal(words["cls.predictions.decoder.weight"], head["bert.embeddings.word_embeddings.weight"])


def test_a_stage_trains_from_both_and_resumes(
    planned: tuple[Plan, dict[str, Path]], tables: dict[str, Path], tmp_path: Path
) -> None:
    whole, again = (job(planned, "both", tables, tmp_path / name) for name in ("whole", "again"))
    run(whole)
    interrupted(again, 4)
    assert run(again).resumed_from_step == 2
    assert (whole.out / "model.safetensors").read_bytes() == (again.out / "model.safetensors").read_bytes()
    assert open_model(whole.out, "cpu").record.labels == open_model(again.out, "cpu").record.labels


def test_which_stages_it_starts_from_is_its_identity_and_their_names_are_not(
    planned: tuple[Plan, dict[str, Path]], sources: dict[str, DataSource], tmp_path: Path
) -> None:
    steps = {step.name: step for step in planned[0].steps}
    assert steps["both"].parents == {
        "start": steps["other"].fingerprint,
        "head_start": steps["classify"].fingerprint,
    }
    assert "head_start" not in steps["both"].identity["stage"]
    renamed = TWO.replace("  other:", "  another:").replace("backbone: other", "backbone: another")
    renamed = renamed.partition("  words:")[0]
    again = {step.name: step for step in plan_of(library_of(tmp_path, small=renamed), "small", sources).steps}
    assert again["both"].fingerprint == steps["both"].fingerprint
    one = TWO.replace("{backbone: other, head: classify}", "other")
    alone = {step.name: step for step in plan_of(library_of(tmp_path, small=one), "small", sources).steps}
    assert alone["both"].fingerprint != steps["both"].fingerprint


def test_a_folder_without_such_a_head_is_refused(
    planned: tuple[Plan, dict[str, Path]], trained: Trained, tables: dict[str, Path], tmp_path: Path
) -> None:
    both = job(planned, "both", tables, tmp_path)
    with pytest.raises(RecipeError, match="0 of its heads are sequence_classification over email, unittest, xml"):
        begun(both.model_copy(update={"head_start": trained.folder("general")}))
    folder = tmp_path / "narrow"
    weights = load_file(trained.folder("classify") / "model.safetensors")
    weights["classifier.weight"] = weights["classifier.weight"][:, :5].clone()
    folder.mkdir()
    for file in trained.folder("classify").iterdir():
        if file.is_file():
            (folder / file.name).write_bytes(file.read_bytes())
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(RecipeError, match=r"classifier.weight is \(3, 5\) in the file, \(3, 32\) in the network"):
        begun(both.model_copy(update={"head_start": folder}))
    words = job(planned, "words", tables, tmp_path)
    other = tmp_path / "tokens"
    other.mkdir()
    for name in ("config.json", "model.safetensors"):
        (other / name).write_bytes((planned[1][planned[0].steps[0].fingerprint] / name).read_bytes())
    WordPiece(vocab_size=300).train(documents("json")).save_pretrained(other)
    with pytest.raises(RecipeError, match=r"its head scores 300 tokens, and the backbone in .* reads 512, of which"):
        begun(words.model_copy(update={"head_start": other}))
