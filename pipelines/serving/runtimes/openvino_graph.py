"""OpenVINO's own graph format: written, opened and called, without telemetry.

openvino.xml        the graph
openvino.weights    its weights; OpenVINO would name the file .bin, which elsewhere is a pickle and is refused unread
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.errors import DataError
from pipelines.serving.runtimes import Compute
from pipelines.serving.runtimes.model_inputs import select_inputs

GRAPH, WEIGHTS = "openvino.xml", "openvino.weights"
TELEMETRY = "openvino_telemetry"


def quiet_import(name: str) -> Any:
    """The module `name` of OpenVINO or NNCF, imported as if their telemetry package were not installed.

    Both then use their own stub of it. Otherwise NNCF would send usage data, unless a file in the home folder disables
    that.
    """
    sys.modules.setdefault(TELEMETRY, None)  # type: ignore[arg-type]
    return importlib.import_module(name)


def read_onnx(path: Path) -> Any:
    """The ONNX file at `path` as an openvino.Model."""
    return quiet_import("openvino").Core().read_model(path)


def write_graph(model: Any, out: Path) -> None:
    """Write `model` into `out`, with float32 constants compressed to 16 bits."""
    quiet_import("openvino").save_model(model, out / GRAPH, compress_to_fp16=True)
    os.replace((out / GRAPH).with_suffix(".bin"), out / WEIGHTS)


def open_graph(folder: Path, threads: int, precision: str) -> Compute:
    """The graph in `folder`; what is not quantized is computed in `precision` (`f32` or `bf16`)."""
    core = quiet_import("openvino").Core()
    settings = {
        "INFERENCE_PRECISION_HINT": precision,
        "INFERENCE_NUM_THREADS": str(threads),
        "NUM_STREAMS": "1",
        # on a shared machine, a pinned thread waits for its core while others are idle
        "ENABLE_CPU_PINNING": "NO",
    }
    try:
        compiled = core.compile_model(core.read_model(folder / GRAPH, folder / WEIGHTS), "CPU", settings)
    except RuntimeError as error:
        raise DataError(f"{folder / GRAPH}: OpenVINO cannot read it ({str(error).splitlines()[0]})") from error
    inputs = [entry.get_any_name() for entry in compiled.inputs]
    request, lock = compiled.create_infer_request(), Lock()

    def compute(
        ids: NDArray[np.int64], mask: NDArray[np.int64], types: NDArray[np.int64] | None = None, /
    ) -> NDArray[np.float32]:
        with lock:  # an inference request is not thread-safe
            outputs = request.infer(select_inputs(inputs, (ids, mask, types)), share_inputs=True)
            return np.array(outputs[0], dtype=np.float32)

    return compute
