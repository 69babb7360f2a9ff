"""Export of a model to the runtime that is fastest on this machine: every runtime is converted, checked and timed.

convert ─▶ open ─▶ same answers as float32? ─▶ same score? ─▶ latency, interleaved ─▶ the fastest that passed

export(folder, Path("served"), data, ExportLimits())        # served/ opens with load_predictor
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from pipelines.components import did_you_mean
from pipelines.errors import DataError
from pipelines.lineage.disk import flush
from pipelines.lineage.fingerprint import digest_file
from pipelines.lineage.hardware import device_name, extensions
from pipelines.lineage.locks import Lock
from pipelines.lineage.provenance import FileDigest
from pipelines.models.text_network import OutputKind, max_row_length, output_kind, rows_per_example
from pipelines.networks.folder import CONFIGURATION
from pipelines.networks.text_encoder import TextEncoder
from pipelines.serving.exported import EXPORT, Export, ExportMeasurement, Machine, RuntimeLatency
from pipelines.serving.exporting.measures import SHAPES, cosines, overall, served_answers, time_interleaved
from pipelines.serving.runtimes import Compute, ServingRuntime, reference_runtime, runtimes_by_name
from pipelines.serving.runtimes.model_inputs import ModelInputs
from pipelines.serving.runtimes.source_model import SourceModel

FEWEST_TEXTS = 8


@dataclass(frozen=True)
class ExportData:
    """Texts of an export, as batches of one example, and the scoring of labelled examples."""

    described: str
    """Source of the texts, in words."""
    calibration: Sequence[ModelInputs]
    """Texts that 8-bit scales are calibrated on."""
    checked: Sequence[ModelInputs]
    """Other texts, on which answers are compared."""
    score: Callable[[Compute], float] | None = None
    """The task's first metric on labelled examples; None if there are none."""
    metric: str = ""
    """Name of that metric."""


@dataclass(frozen=True)
class ExportLimits:
    """Limits on the deviation from float32 for a runtime to be chosen, and how runtimes are timed."""

    least_cosine: float = 0.997
    """Smallest allowed cosine between an answer and that of float32, over the checked texts."""
    most_lost: float = 0.005
    """Largest allowed loss of the task's metric."""
    threads: int = 1
    rounds: int = 30
    """Timed calls with one example; a fifth as many with larger batches."""
    batch: int | None = None
    """Batch size whose speed decides; None: all shapes do."""
    only: tuple[str, ...] = ()
    """Runtimes to choose from; all if empty."""
    shapes: Sequence[tuple[int, int]] = field(default=SHAPES)

    @property
    def rule(self) -> str:
        """The rule of the choice, in words."""
        over = "over all shapes" if self.batch is None else f"with {self.batch} examples at a time"
        return (
            f"the highest geometric mean of speed-ups over {reference_runtime()} {over}, among those within the limits"
        )


def export(
    source: Path,
    destination: Path,
    data: ExportData,
    limits: ExportLimits,
    *,
    model: str = "",
    fingerprint: str = "",
    report_progress: Callable[[str], None] = lambda line: None,
) -> Export:
    """Write `source` into `destination` in the format of the fastest runtime whose answers agree, and return the
    record.

    `report_progress` receives one line per step. The folder is written atomically. Raises DataError when the model
    cannot be served by a runtime, when `destination` contains something else, or when none of `limits.only` may be
    chosen.
    """
    output, destination = output_kind(source), destination.absolute()
    _refuse_occupied(destination)
    runtimes = _requested_runtimes(limits.only)
    if len(data.checked) < FEWEST_TEXTS:
        raise DataError(f"{len(data.checked)} texts to compare answers on; give {FEWEST_TEXTS} or more (--texts)")
    longest = min(max_row_length(source), TextEncoder(source).length)
    shapes = list(dict.fromkeys((rows, min(tokens, longest)) for rows, tokens in limits.shapes))
    left_out = {name: lacking for name, runtime in runtimes.items() if (lacking := runtime.missing())}
    with _scratch_folder(destination) as scratch:
        original = SourceModel(source, scratch, data.calibration)
        computes, opened_in = _opened(runtimes, left_out, original, limits, data.checked, report_progress)
        for name, why in left_out.items():
            report_progress(f"{name}: left out, {why}")
        checks = _checks(computes, data, output, limits, report_progress)
        report_progress(f"timing {', '.join(computes)} in turns")
        tokens = np.concatenate([rows[0].ravel() for rows in data.checked])
        timed = time_interleaved(computes, reference_runtime(), tokens, shapes, limits.rounds, rows_per_example(source))
        measured = {name: _measured(checks[name], timed[name], opened_in[name], scratch / name) for name in computes}
        chosen = _chosen(measured, limits, left_out)
        folder = scratch / chosen
        record = Export(
            runtime=runtimes[chosen],
            rule=limits.rule,
            source=fingerprint or _digest(source),
            model=model or str(source),
            output=output,
            machine=_machine(runtimes, limits.threads),
            checked={
                "texts": len(data.checked),
                "from": data.described,
                "least_cosine": limits.least_cosine,
                "metric": data.metric or None,
                "most_lost": limits.most_lost,
            },
            measured=measured,
            left_out=left_out,
            files={path.name: _file_digest(path) for path in sorted(folder.iterdir())},
        )
        (folder / EXPORT).write_text(record.model_dump_json(indent=1) + "\n", encoding="utf-8")
        for path in (*folder.iterdir(), folder):
            flush(path)
        if destination.exists():
            os.replace(destination, scratch / "before")
        os.replace(folder, destination)
        flush(destination.parent)
    return record


@contextmanager
def _scratch_folder(destination: Path) -> Iterator[Path]:
    """An empty folder next to `destination`, exclusive to this process and removed afterwards; also removes that of a
    killed export."""
    destination.parent.mkdir(parents=True, exist_ok=True)
    scratch = destination.parent / f".{destination.name}.exporting"
    lock = Lock.take(scratch.with_name(f"{scratch.name}.lock"))
    if lock is None:
        raise DataError(f"{destination}: another export is writing this folder; wait for it, or name another folder")
    try:
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        lock.release(delete=True)


def _opened(
    runtimes: Mapping[str, ServingRuntime],
    left_out: dict[str, str],
    original: SourceModel,
    limits: ExportLimits,
    checked: Sequence[ModelInputs],
    report_progress: Callable[[str], None],
) -> tuple[dict[str, Compute], dict[str, float]]:
    """Every runtime opened, and the seconds from its files to its first answer; failures are added to `left_out`."""
    computes: dict[str, Compute] = {}
    seconds: dict[str, float] = {}
    for name in [name for name in runtimes if name not in left_out]:
        report_progress(f"{name}: converting")
        out = original.scratch / name
        out.mkdir()
        for file in CONFIGURATION:
            if (original.folder / file).is_file():
                shutil.copyfile(original.folder / file, out / file)
        try:
            runtimes[name].convert(original, out)
            begun = time.perf_counter()
            compute = runtimes[name].open(out, limits.threads)
            served_answers(compute, checked[:1], original.output)
        except OSError:
            raise
        except Exception as error:  # converters raise any exception of their libraries; the other runtimes go on
            if name == reference_runtime():
                raise
            lines = str(error).strip().splitlines() or [""]
            left_out[name] = f"it failed: {type(error).__name__}: {lines[0][:300]}"
        else:
            computes[name], seconds[name] = compute, time.perf_counter() - begun
    return computes, seconds


def _requested_runtimes(only: Sequence[str]) -> dict[str, ServingRuntime]:
    """The runtimes to try, the reference runtime first."""
    known = runtimes_by_name()
    for name in only:
        if name not in known:
            raise DataError(f"there is no runtime {name!r}.{did_you_mean(name, known)}")
    chosen = [name for name in known if not only or name in only]
    return {name: known[name] for name in dict.fromkeys([reference_runtime(), *chosen])}


def _checks(
    computes: Mapping[str, Compute],
    data: ExportData,
    output: OutputKind,
    limits: ExportLimits,
    report_progress: Callable[[str], None],
) -> dict[str, ExportMeasurement]:
    """Agreement of each runtime with the reference, and why it may not be chosen."""
    expected = served_answers(computes[reference_runtime()], data.checked, output)
    reference_score = data.score(computes[reference_runtime()]) if data.score else None
    measurements = {}
    for name, compute in computes.items():
        report_progress(f"{name}: comparing answers")
        given = expected if name == reference_runtime() else served_answers(compute, data.checked, output)
        alike = cosines(expected, given)
        score = reference_score if name == reference_runtime() or data.score is None else data.score(compute)
        refused = []
        least = round(float(alike.min()), 6)
        if name != reference_runtime() and least < limits.least_cosine:
            refused.append(
                f"cosine {least:.4f} with float32 on one of {len(given)} texts, less than {limits.least_cosine}"
            )
        if score is not None and reference_score is not None and reference_score - score > limits.most_lost:
            refused.append(
                f"{data.metric} {score:.4f}, float32 has {reference_score:.4f}: a loss of more than {limits.most_lost}"
            )
        measurements[name] = ExportMeasurement(
            cosine_least=least,
            cosine_mean=round(float(alike.mean()), 6),
            score=score,
            score_float32=reference_score,
            bytes=0,
            seconds_to_open=0,
            refused="; ".join(refused) or None,
        )
    return measurements


def _measured(
    checked: ExportMeasurement, latency: tuple[RuntimeLatency, ...], opened_in: float, folder: Path
) -> ExportMeasurement:
    size = sum(path.stat().st_size for path in folder.iterdir())
    return checked.model_copy(update={"latency": latency, "seconds_to_open": round(opened_in, 3), "bytes": size})


def _chosen(measured: Mapping[str, ExportMeasurement], limits: ExportLimits, left_out: Mapping[str, str]) -> str:
    allowed = [
        name
        for name, measurement in measured.items()
        if not measurement.refused and (not limits.only or name in limits.only)
    ]
    if not allowed:
        why = [
            f"{name}: {measurement.refused}"
            for name, measurement in measured.items()
            if measurement.refused and name in limits.only
        ]
        why += [f"{name}: {reason}" for name, reason in left_out.items() if name in limits.only]
        raise DataError(f"none of {', '.join(limits.only)} may be chosen. {'; '.join(why)}. Nothing was written")
    return max(allowed, key=lambda name: overall(measured[name].latency, limits.batch))


def _refuse_occupied(destination: Path) -> None:
    """Raise DataError unless `destination` is absent, empty, or an earlier export, which may be replaced."""
    if (
        destination.exists()
        and not (destination / EXPORT).is_file()
        and (not destination.is_dir() or any(destination.iterdir()))
    ):
        raise DataError(f"{destination}: contains files that are not an export; name a folder that does not exist yet")


def _file_digest(path: Path) -> FileDigest:
    return FileDigest(sha256=digest_file(path), bytes=path.stat().st_size)


def _digest(source: Path) -> str:
    weights = sorted(source.glob("*.safetensors"))
    return digest_file(weights[0]) if weights else ""


def _machine(runtimes: Mapping[str, ServingRuntime], threads: int) -> Machine:
    useful = {name for runtime in runtimes_by_name().values() for name in runtime.instructions}
    packages = {name for runtime in runtimes.values() for name in runtime.packages if runtime.missing() is None}
    return Machine(
        processor=device_name("cpu"),
        instructions=tuple(sorted(useful & extensions())),
        threads=threads,
        versions={name: importlib.metadata.version(name) for name in sorted(packages)},
    )
