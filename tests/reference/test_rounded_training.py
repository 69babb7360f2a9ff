"""Training through rounded weights: values and gradients in float64 by the paper's equations, inputs as ONNX Runtime
rounds them, and a stage from its first step to a file of few bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from numpy.typing import NDArray
from onnx import TensorProto, helper
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from pipelines.judging.evaluations.memory_size import memory_bytes
from pipelines.judging.evaluations.saved_weights import is_packed, parameters, served_weights
from pipelines.lineage.provenance import DataSource
from pipelines.lineage.results import METRICS
from pipelines.models.opening import open_model
from pipelines.models.text_network import open_text_network
from pipelines.networks.coded_weights import CodedWeight
from pipelines.networks.group_quantization import matrix
from pipelines.networks.onnx_graph import export_onnx, open_onnx, quantize_onnx
from pipelines.networks.rounded_layers import (
    Rounding,
    round_in_training,
    rounded_inputs,
    rounded_matrix,
    rounding_of,
)
from pipelines.recipe.job import Job
from pipelines.training.ranks.run import run
from tests.pipelines.training.computed_stages import computed, matrices
from tests.pipelines.training.small_recipe import masked_lm_stage, recipe_of
from tests.pipelines.training.test_resume_of_shapes import interrupted

Matrix = NDArray[np.float64]


def by_hand(weight: Matrix, bits: int, groups: int) -> Matrix:
    """The nearest of 2^bits equally spaced values from the smallest to the largest of each group (§3.2), whose range is
    kept in half precision: the minimum rounded down, the step up."""
    result = np.empty_like(weight)
    size = -(-len(weight) // groups)
    for begin in range(0, len(weight), size):
        group = weight[begin : begin + size]
        low = np.float16(group.min())
        low = low if low <= group.min() else np.nextafter(low, np.float16(-np.inf))
        exact = (group.max() - float(low)) / (2**bits - 1)
        step = np.float16(exact)
        step = step if step >= exact else np.nextafter(step, np.float16(np.inf))
        result[begin : begin + size] = float(low) + float(step) * np.round((group - float(low)) / float(step))
    return result


@pytest.mark.parametrize("bits", [2, 3, 4, 8])
@pytest.mark.parametrize("groups", [1, 3, 12])
def test_weights_are_those_of_their_codes_and_the_gradient_passes(bits: int, groups: int) -> None:
    """y = Q(W) x; ∂L/∂W is that of ∂L/∂Q(W)."""
    generator = torch.Generator().manual_seed(bits)
    weight = torch.randn(12, 7, generator=generator)
    inputs, targets = torch.randn(5, 7, generator=generator), torch.randn(5, 12, generator=generator)
    expected = by_hand(weight.double().numpy(), bits, groups)
    np.testing.assert_allclose(rounded_matrix(weight, bits, groups).numpy(), expected, rtol=0, atol=1e-5)
    for layer, transposed in ((nn.Linear(7, 12), False), (Conv1D(12, 7), True)):
        with torch.no_grad():
            layer.weight.copy_(weight.T if transposed else weight)
            assert layer.bias is not None
            layer.bias.zero_()
        round_in_training(layer, Rounding(bits, groups, rounds_inputs=False))
        (layer(inputs) - targets).square().sum().backward()
        residual = inputs.double().numpy() @ expected.T - targets.double().numpy()
        gradient = 2 * residual.T @ inputs.double().numpy()
        assert layer.weight.grad is not None
        actual = layer.weight.grad.T if transposed else layer.weight.grad
        np.testing.assert_allclose(actual.numpy(), gradient, rtol=0, atol=1e-3)
        assert torch.equal(matrix(layer).detach(), weight), "the weight itself is as it was"


def test_rows_of_a_table_are_rounded_by_the_ranges_of_all() -> None:
    table = nn.Embedding(20, 6)
    weight = table.weight.detach().clone()
    round_in_training(table, Rounding(3, 5, rounds_inputs=True))
    ids = torch.tensor([[0, 7], [19, 7]])
    rows = table(ids)
    assert torch.equal(rows.detach(), rounded_matrix(weight, 3, 5)[ids])
    rows.sum().backward()
    assert table.weight.grad is not None
    assert table.weight.grad.sum(1).tolist() == [6 * (ids == row).sum().item() for row in range(20)]


@pytest.mark.parametrize("shift", [-3.0, 0.0, 0.7, 5.0])
def test_inputs_are_rounded_as_onnx_runtime_rounds_them(shift: float) -> None:
    node = helper.make_node("DynamicQuantizeLinear", ["x"], ["codes", "scale", "zero"])
    back = helper.make_node("DequantizeLinear", ["codes", "scale", "zero"], ["y"])
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 9]) for name in ("x", "y")]
    graph = helper.make_graph([node, back], "inputs", values[:1], values[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.checker.check_model(model)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    states = torch.randn(4, 9, generator=torch.Generator().manual_seed(0)) + shift
    (expected,) = session.run(None, {"x": states.numpy()})
    states.requires_grad_()
    rounded = rounded_inputs(states)
    np.testing.assert_allclose(rounded.detach().numpy(), expected, rtol=0, atol=1e-6)
    assert len(rounded.detach().unique()) > 20 and not torch.equal(rounded, states)
    rounded.sum().backward()
    assert states.grad is not None and bool((states.grad == 1).all())


def test_inputs_that_are_all_zero_stay_zero() -> None:
    assert torch.equal(rounded_inputs(torch.zeros(2, 3)), torch.zeros(2, 3))


RECIPE = recipe_of(
    "rounding",
    "arXiv:1909.05840",
    masked_lm_stage(tokens=2048, positions=32, batch_tokens=512),
    """\
  rounded:
    kind: finetune
    start: general
    corpus: task
    head: sequence_classification
    objective: cross_entropy
    compression: {name: rounded_training, bits: {mean: 2.5, between: [2, 3], choice: hessian}, groups: 8}
    strategy: full
    dropout: 0.1
    optimizer: {lr: 1.0e-3, precision: 32-true}
    budget: {epochs: 4, batch_texts: 4, length: 32, calibration: 2}
  packed: {kind: compress, start: rounded, corpus: task, head: sequence_classification,
           compression: {name: integer_codes, bits: trained}, budget: {length: 32}}
  tuned: {like: rounded, start: rounded, compression: [], budget: {epochs: 1}}
""",
)


@pytest.fixture(scope="module")
def jobs(
    tables: dict[str, Path], sources: dict[str, DataSource], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Job]:
    """Stage → the job that computed it, without interruption."""
    return computed(tmp_path_factory.mktemp("rounding"), "rounding", RECIPE, tables, sources)


def answers(folder: Path) -> Tensor:
    ids = torch.randint(5, 200, (4, 12), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        logits: Tensor = open_text_network(folder)(ids, torch.ones_like(ids))
    return logits


def test_the_file_has_the_weights_that_were_trained(jobs: dict[str, Job]) -> None:
    rounded, packed = (open_model(jobs[name].out, "cpu") for name in ("rounded", "packed"))
    (change,) = rounded.record.changes
    assert {values["bits"] for name, values in change.modules.items() if "layer" in name} == {2, 3}
    assert [one.compression.name for one in packed.record.changes] == ["rounded_training", "integer_codes"]
    for name, values in change.modules.items():
        before = rounded.network.base_model.get_submodule(name)
        after = packed.network.base_model.get_submodule(name)
        assert rounding_of(before) == (values["bits"], values["groups"], True) and isinstance(after, CodedWeight)
        expected = rounded_matrix(matrix(before), values["bits"], values["groups"])
        torch.testing.assert_close(after.values(), expected, rtol=1e-5, atol=1e-6)
    # inputs are rounded while training, and not by torch afterwards
    torch.testing.assert_close(answers(jobs["packed"].out), answers(jobs["rounded"].out), rtol=0, atol=0.05)


def test_bytes_on_disk_and_in_memory_are_those_of_the_codes(jobs: dict[str, Job]) -> None:
    sizes = {name: served_weights(jobs[name].out) for name in ("rounded", "packed")}
    assert is_packed(sizes["packed"]) and parameters(sizes["packed"]) == parameters(sizes["rounded"])
    weights = parameters(sizes["packed"])
    assert sizes["rounded"].stat().st_size > 4 * weights > 2.5 * sizes["packed"].stat().st_size
    assert memory_bytes(jobs["rounded"].out) > 4 * weights > 2.5 * memory_bytes(jobs["packed"].out) > 2.5 * weights


def test_an_interrupted_stage_ends_as_if_never_interrupted(jobs: dict[str, Job], tmp_path: Path) -> None:
    job = jobs["rounded"].model_copy(update={"out": tmp_path / "rounded"})
    interrupted(job, 6)
    assert run(job).resumed_from_step == 4
    for file in ("model.safetensors", METRICS):
        assert (job.out / file).read_bytes() == (jobs["rounded"].out / file).read_bytes(), file


def test_a_later_stage_trains_on_in_the_same_way(jobs: dict[str, Job]) -> None:
    tuned = open_model(jobs["tuned"].out, "cpu")
    assert [one.compression.name for one in tuned.record.changes] == ["rounded_training"]
    first, second = (matrices(jobs[name].out) for name in ("rounded", "tuned"))
    assert not any(torch.equal(value, second[name]) for name, value in first.items())
    assert len(second["bert.encoder.layer.0.output.dense.weight"].unique()) > 2**3 * 8, "below, weights are float32"


def test_runtimes_serve_what_was_packed(jobs: dict[str, Job], tmp_path: Path) -> None:
    """Also in 8-bit integers with inputs of 8 bits, which is what training simulates."""
    ids = torch.randint(5, 200, (4, 12), generator=torch.Generator().manual_seed(0))
    inputs = {"input_ids": ids.numpy(), "attention_mask": torch.ones_like(ids).numpy()}
    export_onnx(open_text_network(jobs["packed"].out), tmp_path / "float32.onnx", 32, output="logits")
    (plain,) = open_onnx(tmp_path / "float32.onnx", 1).run(None, inputs)
    np.testing.assert_allclose(plain, answers(jobs["packed"].out).numpy(), rtol=0, atol=1e-4)
    quantize_onnx(tmp_path / "float32.onnx", tmp_path / "int8.onnx")
    kinds = {node.op_type for node in onnx.load(tmp_path / "int8.onnx").graph.node}
    assert {"MatMulInteger", "DynamicQuantizeLinear"} <= kinds
    (integers,) = open_onnx(tmp_path / "int8.onnx", 1).run(None, inputs)
    np.testing.assert_allclose(integers, answers(jobs["rounded"].out).numpy(), rtol=0, atol=0.05)
