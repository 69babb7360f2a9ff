"""Every form in which the judged models can be served on this machine: their bytes, milliseconds and scores.

    stage's folder ─┬─ as it is            torch, packed weights unpacked when it is opened
                    └─ each runtime        converted, opened, asked for the answers to the whole test table
                              ▼
    bytes on disk · score and its difference from the first stage on the same examples · interleaved milliseconds

All runtimes of the machine are measured on the first stage; the other stages are converted to the fastest of them.
"""

from __future__ import annotations

import math
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, field_validator

from pipelines.components import did_you_mean
from pipelines.judging.certainty.resampling import interval, paired_difference
from pipelines.judging.evaluations import Evaluation
from pipelines.judging.evaluations.answer_operations import count_operations
from pipelines.judging.evaluations.forward_passes import EvaluationSize, ForwardPasses
from pipelines.judging.evaluations.latency import BATCHES, THREADS, served_bytes, time_interleaved, timed_examples
from pipelines.judging.evaluations.saved_weights import is_packed, served_weights
from pipelines.lineage import hardware
from pipelines.networks.folder import CONFIGURATION, ONNX

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipelines.judging.evaluations.context import EvaluationContext
    from pipelines.judging.subjects import Subject
    from pipelines.serving.answering.answerer import Answerer

QUICK_ROUNDS = 9
"""Timed calls by which the fastest runtimes are found."""
COUNTED = 16
"""Test examples over which operations of an answer are averaged."""


@dataclass(frozen=True)
class _Form:
    """A model in one runtime, opened."""

    stage: str
    runtime: str
    bytes: int
    answerer: Answerer

    @property
    def key(self) -> str:
        return f"{self.stage}/{self.runtime}"


class ServedFormsEvaluation(Evaluation, name="served_forms"):
    """Bytes, latency and score of every judged stage in the serving runtimes of this machine, all scores compared with
    the first stage as it is, on the same examples.

    Latency is from examples to answers, tokenizer included, on one thread; all forms are timed in turns. A network that
    runtimes cannot serve, or would only make larger, is measured as it is, and the reason is recorded.
    """

    nondeterministic_keys = frozenset({"forms", "machine", "left_out"})

    rounds: int = Field(60, ge=1, le=100_000)
    """Timed calls with one example; a third as many with thirty-two."""
    fastest: int = Field(2, ge=0, le=100)
    """Runtimes in which the stages after the first are measured, beside torch: those that are fastest on the first."""

    runtimes: tuple[str, ...] = ()
    """Runtimes that are measured beside torch; all of the machine if empty."""

    @field_validator("runtimes")
    @classmethod
    def _known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        from pipelines.serving.runtimes import runtimes_by_name

        for name in names:
            if name not in (known := runtimes_by_name()):
                raise ValueError(f"there is no runtime {name!r}.{did_you_mean(name, known)}")
        return names

    def tiny(self) -> Self:
        return self.model_copy(update={"rounds": 2, "fastest": 1})

    def forward_passes(self, size: EvaluationSize) -> Sequence[ForwardPasses]:
        forms = 1 + self.fastest
        return [ForwardPasses(forms * (size.documents + timed_examples(self.rounds)), size.tokens)]

    def measure(self, context: EvaluationContext) -> dict[str, Any]:
        from pipelines.serving.runtimes import reference_runtime, runtimes_by_name

        metric = context.family.metrics[0]
        left_out: dict[str, str] = {}
        forms: list[_Form] = []
        with tempfile.TemporaryDirectory(prefix="cursus-forms-") as scratch:
            requested = self.runtimes or tuple(runtimes_by_name())
            names = [name for name in requested if name != reference_runtime()]
            for number, models in enumerate(context.task_models.values()):
                own = _forms(context, models[0], names, Path(scratch) / str(number), left_out)
                forms += own
                if not number:
                    names = _fastest(own, context, self.fastest)
            statistics = {one.key: _statistics(one, context) for one in forms}
            answer = {one.key: one.answerer.answer for one in forms}
            milliseconds = time_interleaved(answer, context.rows, self.rounds)
        operations = {stage: _operations(models[0], context) for stage, models in context.task_models.items()}
        first = statistics[forms[0].key]
        score = context.family.scorer(metric)
        records: list[dict[str, Any]] = [
            {
                "stage": one.stage,
                "runtime": one.runtime,
                "bytes": one.bytes,
                "operations": operations[one.stage],
                "latency_ms": {str(size): _quantiles(milliseconds[size][one.key]) for size in BATCHES},
                "score": interval(score, [statistics[one.key]], context.seed).record(),
                "difference": paired_difference(score, [first], [statistics[one.key]], context.seed).record(),
            }
            for one in forms
        ]
        return {
            "forms": records,
            "metric": metric,
            "examples": len(context.rows),
            "teacher": forms[0].stage,
            "left_out": left_out,
            "machine": {"threads": THREADS, "processor": hardware.processor()},
            "headline": {f"test/{metric}/{one['stage']}/{one['runtime']}": one["score"]["mean"] for one in records},
        }


def _forms(
    context: EvaluationContext, subject: Subject, names: Sequence[str], scratch: Path, left_out: dict[str, str]
) -> list[_Form]:
    """A model as it is, and in each of the runtimes `names` that can serve it; why others cannot is added to
    `left_out`."""
    from pipelines.errors import DataError
    from pipelines.models.text_network import output_kind
    from pipelines.serving.answering.answerer import Answerer
    from pipelines.serving.exporting.export_data import export_data
    from pipelines.serving.runtimes import runtime_of, runtimes_by_name
    from pipelines.serving.runtimes.source_model import SourceModel

    stored = Answerer(subject.folder, THREADS)
    forms = [_Form(subject.stage, runtime_of(subject.folder), served_bytes(subject.folder), stored)]
    if (subject.folder / ONNX).is_file():
        left_out[subject.stage] = "its folder is a graph of ONNX Runtime, which no other runtime reads"
        return forms
    if is_packed(served_weights(subject.folder)):
        left_out[subject.stage] = "its weights are packed, and a runtime would unpack them to what they were before"
        return forms
    try:
        output_kind(subject.folder)
        data = export_data(subject.folder, "the training table", context.examples("train"), [])
    except DataError as error:
        left_out[subject.stage] = str(error).removeprefix(f"{subject.folder}: ")
        return forms
    scratch.mkdir()
    original = SourceModel(subject.folder, scratch, data.calibration)
    known = runtimes_by_name()
    for name in names:
        if lacking := known[name].missing():
            left_out[name] = lacking
            continue
        out = scratch / name
        out.mkdir()
        for file in CONFIGURATION:
            if (subject.folder / file).is_file():
                shutil.copyfile(subject.folder / file, out / file)
        try:
            known[name].convert(original, out)
            answerer = Answerer(subject.folder, THREADS, known[name].open(out, THREADS))
            answerer.answer(context.rows[:1])
        except OSError:
            raise
        except Exception as error:  # converters raise any exception of their libraries; the other runtimes go on
            lines = str(error).strip().splitlines() or [""]
            left_out[f"{subject.stage}/{name}"] = f"{type(error).__name__}: {lines[0][:200]}"
            continue
        size = sum(path.stat().st_size for path in out.iterdir())
        forms.append(_Form(subject.stage, name, size, answerer))
    return forms


def _fastest(forms: Sequence[_Form], context: EvaluationContext, most: int) -> list[str]:
    """The runtimes, at most `most`, in which the first model answers fastest: by the geometric mean over `BATCHES`."""
    import numpy as np

    converted = forms[1:]
    if not converted:
        return []
    measured = time_interleaved({one.key: one.answerer.answer for one in converted}, context.rows, QUICK_ROUNDS)
    times = {one.runtime: math.prod(float(np.median(measured[size][one.key])) for size in BATCHES) for one in converted}
    return sorted(times, key=times.__getitem__)[:most]


def _statistics(form: _Form, context: EvaluationContext) -> NDArray[np.float64]:
    """The family's statistics [N, K] of the answers of a form to the test examples."""
    return context.family.statistics(context.gold, form.answerer.answer(context.rows), context.labels)


def _operations(subject: Subject, context: EvaluationContext) -> int | None:
    """Operations of an answer; None for a graph, which torch does not compute."""
    return None if (subject.folder / ONNX).is_file() else count_operations(subject.folder, context.rows[:COUNTED])


def _quantiles(milliseconds: NDArray[np.float64]) -> Mapping[str, float]:
    """Median, 10th and 90th percentile of calls, in milliseconds."""
    import numpy as np

    low, median, high = (round(float(np.quantile(milliseconds, share)), 4) for share in (0.1, 0.5, 0.9))
    return {"median": median, "p10": low, "p90": high, "calls": len(milliseconds)}
