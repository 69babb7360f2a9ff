"""Compressions follow each other, and each folder is opened by one call, whatever was removed of its network."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
from pyarrow import parquet
from safetensors.torch import load_file

from pipelines.errors import DataError, RecipeError
from pipelines.judging.evaluations.answer_operations import count_operations
from pipelines.judging.evaluations.saved_weights import is_packed, parameters, served_weights
from pipelines.lineage.provenance import DataSource
from pipelines.lineage.results import RESULT, SCRATCH
from pipelines.models.opening import ModelRecord, OpenedModel, open_model, open_tokenizer
from pipelines.models.text_network import open_text_network
from pipelines.networks.folder import CONFIGURATION
from pipelines.networks.text_encoder import TextEncoder
from pipelines.recipe.job import Job, Runtime
from pipelines.recipe.plan import Plan
from pipelines.serving.answering.answerer import Answerer
from pipelines.serving.answering.inference import open_predictor
from pipelines.serving.runtimes import runtimes_by_name
from pipelines.serving.runtimes.source_model import SourceModel
from pipelines.training.loop.calibration import StageCalibration
from pipelines.training.loop.inputs import tasks_of
from pipelines.training.ranks.run import run
from tests.made_once import made_once
from tests.pipelines.training.small_recipe import RECIPE
from tests.steps import job_of, library_of, plan_of

CHAIN = (
    RECIPE.replace("num_hidden_layers: 2, num_attention_heads: 2", "num_hidden_layers: 4, num_attention_heads: 4")
    .replace("epochs: 60", "epochs: 1")
    .replace("tokens: 204800", "tokens: 20480")
    .partition("  small:")[0]
    + """\
  layers: {kind: compress, start: classify, corpus: task, head: sequence_classification, compression: select_layers,
    budget: {length: 48}}
  pruned:
    kind: compress
    start: layers
    corpus: task
    head: sequence_classification
    objective: cross_entropy
    compression: {name: head_pruning, share: 0.5, rounds: 2}
    budget: {tokens: 0, length: 48, batch_texts: 4, calibration: 3}
  tuned: {like: classify, start: pruned, budget: {epochs: 1}}
  again: {like: pruned, start: tuned, compression: {name: head_pruning, share: 0.75, rounds: 1}}
  packed:
    like: pruned
    start: again
    compression: {name: group_quantization, bits: {mean: 3, choice: hessian}, groups: 8}
    budget: {calibration: 2}
  language_model:
    kind: adapt_domain
    start: general
    corpus: domain
    compression: {name: head_pruning, share: 0.5, rounds: 2}
    objective: masked_lm
    budget: {tokens: 2048, calibration: 2}
  classified: {like: classify, start: language_model, budget: {epochs: 1}}
"""
)


class Chain:
    """Every stage of the recipe, trained once."""

    def __init__(self, plan: Plan, tables: Mapping[str, Path], root: Path) -> None:
        self.plan, self.tables = plan, tables
        self.folders = {step.fingerprint: root / step.name for step in plan.steps}
        self.root = root

    def job(self, stage: str, out: Path, runtime: Runtime | None = None) -> Job:
        step = next(step for step in self.plan.steps if step.name == stage)
        return job_of(step, self.folders, self.tables, out, runtime)

    def open(self, stage: str) -> OpenedModel:
        return open_model(self.root / stage, "cpu")

    def record(self, stage: str) -> ModelRecord:
        return self.open(stage).record


@pytest.fixture(scope="session")
def chain(tables: dict[str, Path], sources: dict[str, DataSource], tmp_path_factory: pytest.TempPathFactory) -> Chain:
    plan = plan_of(library_of(tmp_path_factory.mktemp("recipes"), small=CHAIN), "small", sources)

    def train(root: Path) -> None:
        made = Chain(plan, tables, root)
        for step in plan.steps:
            run(made.job(step.name, root / step.name))

    return Chain(plan, tables, made_once(tmp_path_factory, "compressed", train))


def heads_of(opened: OpenedModel) -> list[int]:
    return [layer.attention.self.query.out_features // 8 for layer in opened.network.base_model.encoder.layer]


def test_every_folder_of_the_chain_opens_with_what_is_left(chain: Chain) -> None:
    assert heads_of(chain.open("classify")) == [4, 4, 4, 4]
    assert heads_of(chain.open("layers")) == [4, 4]
    pruned = heads_of(chain.open("pruned"))
    assert sum(pruned) == 4 and min(pruned) >= 1
    assert heads_of(chain.open("tuned")) == pruned
    assert sum(heads_of(chain.open("again"))) == 3
    names = [change.compression.name for change in chain.record("packed").changes]
    assert names == ["head_pruning", "head_pruning", "group_quantization"]
    assert chain.record("classify").changes == () and "changes" not in chain.record("layers").model_dump()


def test_a_folder_without_changes_says_nothing_of_them(chain: Chain) -> None:
    assert "changes" not in json.loads((chain.root / "layers" / "config.json").read_text())["cursus"]


def test_bytes_fall_from_stage_to_stage(chain: Chain) -> None:
    stages = ("classify", "layers", "pruned", "again", "packed")
    sizes = [(chain.root / stage / "model.safetensors").stat().st_size for stage in stages]
    assert sizes == sorted(sizes, reverse=True) and len(set(sizes)) == len(sizes)
    assert sizes[-1] < 0.4 * sizes[-2]


def test_the_bits_are_within_their_mean(chain: Chain) -> None:
    (change,) = (one for one in chain.record("packed").changes if one.compression.name == "group_quantization")
    backbone = chain.open("packed").network.base_model
    inside = {name: values for name, values in change.modules.items() if "sensitivity" in values}
    assert {values["bits"] for values in inside.values()} <= {2, 4}
    sizes = {name: backbone.get_submodule(name).weight.numel() for name in inside}
    mean = sum(values["bits"] * sizes[name] for name, values in inside.items()) / sum(sizes.values())
    assert 2 <= mean <= 3
    weights = load_file(chain.root / "packed" / "model.safetensors")
    assert weights["bert.embeddings.word_embeddings.codes"].dtype is torch.uint8
    assert not any(name.startswith("bert.encoder") and name.endswith("query.weight") for name in weights)


def test_what_is_served_answers_as_the_opened_network(chain: Chain) -> None:
    texts = ["How a message is parsed.", "Run the tests of a module.", "An element and its children."]
    for stage in ("pruned", "packed"):
        answers = Answerer(chain.root / stage).answer([{"text": text} for text in texts])
        predictor = open_predictor(chain.root / stage)
        assert answers == [predictor.labels[row] for row in predictor.predict(texts).argmax(1)]


def test_what_judges_count_is_true(chain: Chain) -> None:
    rows = [{"text": "How a message is parsed."}, {"text": "Run the tests of a module."}]
    operations = [count_operations(chain.root / stage, rows) for stage in ("classify", "layers", "pruned", "packed")]
    assert operations[0] > 1.9 * operations[1] and operations[1] > 1.2 * operations[2] > 1.2 * operations[3] > 0
    weights = {stage: parameters(served_weights(chain.root / stage)) for stage in ("pruned", "again", "packed")}
    assert weights["packed"] == weights["again"] < weights["pruned"]
    assert is_packed(served_weights(chain.root / "packed")) and not is_packed(served_weights(chain.root / "again"))
    for stage, expected in weights.items():
        assert json.loads((chain.root / stage / RESULT).read_text())["parameters"] == expected


def test_a_pretrained_body_keeps_its_heads_under_another_head(chain: Chain) -> None:
    assert heads_of(chain.open("language_model")) == heads_of(chain.open("classified"))
    assert sum(heads_of(chain.open("classified"))) == 8


def test_a_changed_encoder_is_served_as_vectors(chain: Chain) -> None:
    network = open_text_network(chain.root / "language_model")
    ids = torch.randint(5, 200, (2, 12), generator=torch.Generator().manual_seed(0))
    mask = torch.ones_like(ids)
    states = chain.open("language_model").network.base_model(ids, mask).last_hidden_state
    torch.testing.assert_close(network(ids, mask), states.mean(1))


def test_every_runtime_here_serves_what_is_left_of_a_network(chain: Chain, tmp_path: Path) -> None:
    texts = [str(row["text"]) for row in parquet.read_table(chain.tables["test"]).to_pylist()][:8]
    for stage in ("pruned", "packed"):
        folder = chain.root / stage
        calls = [(ids, mask, None) for text in texts for _, ids, mask in TextEncoder(folder).batches([text], 1)]
        source = SourceModel(folder, tmp_path / stage, calls)
        source.scratch.mkdir()
        for name in ("torch_fp32", "onnxruntime_fp32"):
            out = tmp_path / stage / name
            out.mkdir()
            for file in CONFIGURATION:
                if (folder / file).is_file():
                    shutil.copyfile(folder / file, out / file)
            runtimes_by_name()[name].convert(source, out)
        plain, converted = (
            runtimes_by_name()[name].open(tmp_path / stage / name, 1) for name in ("torch_fp32", "onnxruntime_fp32")
        )
        for ids, mask, _ in calls:
            np.testing.assert_allclose(plain(ids, mask), converted(ids, mask), atol=1e-4)


def test_a_kill_between_the_choice_and_the_end_changes_nothing(chain: Chain, tmp_path: Path) -> None:
    """The choice is kept: a machine that rounds otherwise must not remove other heads than the checkpoint's."""
    job = chain.job("language_model", tmp_path / "resumed")
    path = job.out / SCRATCH / "change-0.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    (change,) = chain.record("language_model").changes
    other = {name: [3 - head for head in gone] for name, gone in change.modules.items()}
    path.write_text(json.dumps(other))
    run(job)
    assert open_model(job.out, "cpu").record.changes[0].modules == other
    again = chain.job("language_model", tmp_path / "again")
    run(again)
    first, second = (load_file(out / "model.safetensors") for out in (chain.root / "language_model", again.out))
    assert all(torch.equal(value, second[name]) for name, value in first.items())


def test_weights_of_few_bits_are_not_trained_from_a_folder_either(chain: Chain, tmp_path: Path) -> None:
    job = chain.job("tuned", tmp_path / "out").model_copy(update={"start": chain.root / "packed"})
    with pytest.raises(RecipeError, match="nothing trains or compresses them further"):
        run(job)
    layers = chain.job("layers", tmp_path / "layers").model_copy(update={"start": chain.root / "pruned"})
    with pytest.raises(RecipeError, match="select_layers would renumber what head_pruning has changed"):
        run(layers)


def test_a_calibration_gives_the_same_batches_each_time_and_refuses_an_empty_set(chain: Chain, tmp_path: Path) -> None:
    job = chain.job("pruned", tmp_path / "out")
    assert job.start is not None
    calibration = StageCalibration(job, tasks_of(job), open_tokenizer(job.start))
    first, second = (list(calibration.batches()) for _ in range(2))
    assert len(first) == 3
    for one, other in zip(first, second, strict=True):
        assert all(torch.equal(value, other[name]) for name, value in one.items())
    calibration._batches = []  # type: ignore[assignment]
    with pytest.raises(DataError, match="calibration set is empty"):
        next(calibration.batches())
