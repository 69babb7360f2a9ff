"""Modules that objectives own: trained, resumed, continued by the next stage, and never part of the model."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from pipelines.errors import RecipeError
from pipelines.lineage.provenance import DataSource
from pipelines.lineage.results import METRICS
from pipelines.models.opening import open_model
from pipelines.parts.tokenizers.wordpiece import WordPiece
from pipelines.recipe.job import Job, Runtime
from pipelines.training.ranks.run import run
from tests.pipelines.training.small_recipe import masked_lm_stage, recipe_of
from tests.pipelines.training.test_resume_of_shapes import interrupted
from tests.small_corpus import documents
from tests.steps import job_of, library_of, plan_of

RECIPE = recipe_of(
    "distilled",
    "arXiv:1909.10351",
    masked_lm_stage("teacher", tokens=2048, positions=32, batch_tokens=512),
    """\
  student:
    like: teacher
    teacher: teacher
    backbone:
      name: transformer
      positions: 32
      dims: {hidden_size: 16, num_hidden_layers: 1, num_attention_heads: 2, intermediate_size: 32}
    objective: [masked_lm, match_hidden]
    budget: {tokens: 5120}
  continued: {kind: adapt_domain, start: student, teacher: teacher, corpus: domain, budget: {tokens: 2048}}
  fresh: {like: continued, start: {untrained: student}, tokenizer: null}
""",
)
SAVED = Path("objectives") / "match_hidden.safetensors"


@pytest.fixture(scope="module")
def jobs(tables: dict[str, Path], sources: dict[str, DataSource], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each stage, all of them computed without interruption."""
    root = tmp_path_factory.mktemp("distilled")
    for name in ("teacher", "student", "continued"):
        run(made(name, root, tables, sources, root / name))
    return root


def made(name: str, root: Path, tables: dict[str, Path], sources: dict[str, DataSource], out: Path) -> Job:
    root.mkdir(exist_ok=True)
    plan = plan_of(library_of(root, distilled=RECIPE), "distilled", sources)
    folders = {step.fingerprint: root / step.name for step in plan.steps}
    step = next(step for step in plan.steps if step.name == name)
    job = job_of(step, folders, tables, out, Runtime(log_every=1, checkpoint_every=4))
    # a later stage has a seed of its own: its random weights are not those that the first one began with
    return job.model_copy(update={"seed": int(name in ("continued", "fresh"))})


def test_they_train_and_are_never_part_of_the_model(jobs: Path) -> None:
    projections = load_file(jobs / "student" / SAVED)
    assert {name: tuple(value.shape) for name, value in projections.items()} == {
        "embeddings.weight": (32, 16),
        "layers.weight": (32, 16),
    }
    opened = open_model(jobs / "student", "cpu")
    assert opened.network.config.hidden_size == 16
    names = {*load_file(jobs / "student" / "model.safetensors"), *dict(opened.network.named_parameters())}
    assert not any("projection" in name or "match_hidden" in name for name in names)
    assert not (jobs / "teacher" / "objectives").exists()


def test_the_next_stage_continues_them(jobs: Path) -> None:
    before, after = (load_file(jobs / name / SAVED)["layers.weight"] for name in ("student", "continued"))
    assert not torch.equal(before, after)
    # four steps further, not somewhere else: fresh ones would have nothing in common with them
    assert torch.nn.functional.cosine_similarity(before.flatten(), after.flatten(), dim=0) > 0.9


def test_an_interrupted_stage_ends_as_if_never_interrupted(
    jobs: Path, tables: dict[str, Path], sources: dict[str, DataSource], tmp_path: Path
) -> None:
    job = made("student", jobs, tables, sources, tmp_path / "again")
    interrupted(job, 7)
    assert run(job).resumed_from_step == 4
    for file in ("model.safetensors", METRICS, SAVED):
        assert (job.out / file).read_bytes() == (jobs / "student" / file).read_bytes()


def test_random_weights_begin_with_random_ones(
    jobs: Path, tables: dict[str, Path], sources: dict[str, DataSource], tmp_path: Path
) -> None:
    job = made("fresh", jobs, tables, sources, tmp_path / "fresh")
    run(job)
    before, after = (load_file(folder / SAVED)["layers.weight"] for folder in (jobs / "student", job.out))
    assert torch.nn.functional.cosine_similarity(before.flatten(), after.flatten(), dim=0) < 0.5


def test_those_of_another_width_are_not_taken_and_a_damaged_file_is_refused(
    jobs: Path,
    tables: dict[str, Path],
    sources: dict[str, DataSource],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    shutil.copytree(jobs, tmp_path / "copy")
    job = made("continued", tmp_path / "copy", tables, sources, tmp_path / "other")
    assert job.start is not None
    save_file({"layers.weight": torch.ones(2, 2)}, job.start / SAVED)
    with caplog.at_level("WARNING"):
        run(job)
    assert "begins anew" in caplog.text
    (job.start / SAVED).write_bytes(b"damaged")
    with pytest.raises(RecipeError, match="match_hidden.safetensors: damaged or not a safetensors file"):
        run(job.model_copy(update={"out": tmp_path / "refused"}))


def test_a_teacher_that_has_other_words_in_its_folder_is_refused(
    jobs: Path, tables: dict[str, Path], sources: dict[str, DataSource], tmp_path: Path
) -> None:
    job = made("student", jobs, tables, sources, tmp_path / "student")
    shutil.copytree(jobs / "teacher", tmp_path / "teacher")
    (tmp_path / "teacher" / "tokenizer.json").unlink()
    WordPiece(vocab_size=300).train(documents("json")).save_pretrained(tmp_path / "teacher")
    message = r"stage student: teacher: teacher has 300 tokens and this stage has 512, of which \d+ are the same word"
    with pytest.raises(RecipeError, match=message):
        run(job.model_copy(update={"teachers": {"": tmp_path / "teacher"}}))
