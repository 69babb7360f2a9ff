"""Static 8-bit graphs: calibrated on the stage's own examples, the same for any batch, refused where they differ."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from pipelines.errors import StageError
from pipelines.lineage.provenance import DataSource
from pipelines.models.classifier import load_classifier
from pipelines.models.opening import open_tokenizer
from pipelines.networks.folder import ONNX, read_json
from pipelines.parts.compressions.static_int8 import StaticInt8
from pipelines.recipe.job import Job
from pipelines.recipe.plan import Plan
from pipelines.serving.answering.inference import open_predictor
from pipelines.training.loop.calibration import StageCalibration
from pipelines.training.loop.inputs import tasks_of
from pipelines.training.ranks.run import run
from tests.made_once import made_once
from tests.pipelines.training.small_recipe import RECIPE
from tests.steps import job_of, library_of, plan_of

STATIC = (
    RECIPE.replace("epochs: 60", "epochs: 8").partition("  small:")[0]
    + """\
  static:
    kind: compress
    start: classify
    corpus: task
    head: sequence_classification
    compression: static_int8
    budget: {length: 48, batch_texts: 8, calibration: 4}
"""
)


class Converted:
    """The recipe's stages, each trained or converted once."""

    def __init__(self, plan: Plan, tables: Mapping[str, Path], root: Path) -> None:
        self.plan, self.tables, self.root = plan, tables, root

    def job(self, stage: str, out: Path) -> Job:
        folders = {step.fingerprint: self.root / step.name for step in self.plan.steps}
        return job_of(next(step for step in self.plan.steps if step.name == stage), folders, self.tables, out)


@pytest.fixture(scope="session")
def converted(
    tables: dict[str, Path], sources: dict[str, DataSource], tmp_path_factory: pytest.TempPathFactory
) -> Converted:
    plan = plan_of(library_of(tmp_path_factory.mktemp("recipes"), small=STATIC), "small", sources)

    def make(root: Path) -> None:
        made = Converted(plan, tables, root)
        for step in plan.steps:
            run(made.job(step.name, root / step.name))

    return Converted(plan, tables, made_once(tmp_path_factory, "static", make))


def test_products_have_eight_bit_inputs_with_calibrated_scales(converted: Converted) -> None:
    graph = onnx.load(converted.root / "static" / ONNX).graph
    makers = {output: node for node in graph.node for output in node.output}
    products = [node for node in graph.node if node.op_type in ("MatMul", "Gemm")]
    assert products
    for node in products:
        for name in node.input[:2]:
            assert makers[name].op_type == "DequantizeLinear", f"{node.name} reads {name} in float32"
    assert not any(node.op_type == "DynamicQuantizeLinear" for node in graph.node)
    floats = [tensor for tensor in graph.initializer if tensor.data_type == onnx.TensorProto.FLOAT]
    assert max(int(np.prod(tensor.dims)) for tensor in floats) <= 128
    size, before = ((converted.root / one).stat().st_size for one in (f"static/{ONNX}", "classify/model.safetensors"))
    assert size < 0.6 * before


def test_answers_are_near_the_source_s_and_do_not_depend_on_the_batch(converted: Converted) -> None:
    texts = [f"{word} documents of the package" for word in ("json", "email", "parse", "read", "the", "http")]
    before, after = (open_predictor(converted.root / one) for one in ("classify", "static"))
    first, second = before.predict(texts, 1), after.predict(texts, 1)
    cosine = (first * second).sum(1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)
    assert cosine.min() > 0.98
    np.testing.assert_allclose(after.predict([texts[0]] * 4, 4)[3], second[0], atol=1e-6)
    # longer rows in the same batch change no scale; dynamic quantization would answer differently
    together = after.predict([*texts, " ".join(texts)], 7)
    np.testing.assert_allclose(together[:6], second, atol=0.02)
    record = read_json(converted.root / "static" / "quantization.json")
    assert record["cosine_mean"] > 0.99


def scales(folder: Path) -> NDArray[np.float64]:
    """The scales of activations in a converted folder."""
    graph = onnx.load(folder / ONNX).graph
    known = {one.name: onnx.numpy_helper.to_array(one) for one in graph.initializer}
    inputs = [node.input[1] for node in graph.node if node.op_type == "QuantizeLinear"]
    return np.array([float(known[name]) for name in inputs if known[name].ndim == 0])


@pytest.mark.parametrize("ranges", ["extremes", "percentile"])
def test_scales_follow_the_calibration_batches(converted: Converted, tmp_path: Path, ranges: str) -> None:
    def convert(batches: int) -> Path:
        job = converted.job("static", tmp_path / "out")
        budget = job.stage.budget.model_copy(update={"calibration": batches})
        stage = job.stage.model_copy(update={"budget": budget})
        again = job.model_copy(update={"stage": stage})
        assert job.start is not None
        calibration = StageCalibration(again, tasks_of(again), open_tokenizer(job.start))
        part = StaticInt8(ranges=ranges)  # type: ignore[arg-type]
        part.convert(job.start, load_classifier(job.start), tmp_path / f"{batches}", calibration)
        return tmp_path / f"{batches}"

    few = scales(convert(1))
    # four batches and the extremes are what the stage itself was converted with
    many = scales(converted.root / "static" if ranges == "extremes" else convert(4))
    assert len(few) == len(many) > 4 and (few > 0).all()
    assert (many != few).any()
    if ranges == "extremes":
        assert (many >= few - 1e-9).all(), "more batches, no smaller range"


def test_a_conversion_that_changes_the_answers_is_refused(converted: Converted, tmp_path: Path) -> None:
    job = converted.job("static", tmp_path / "out")
    assert job.start is not None
    calibration = StageCalibration(job, tasks_of(job), open_tokenizer(job.start))
    with pytest.raises(StageError, match=r"static_int8: .* less than least_cosine 1.0; serve this model in float32"):
        StaticInt8(least_cosine=1.0).convert(job.start, load_classifier(job.start), tmp_path / "again", calibration)
