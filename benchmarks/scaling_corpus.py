"""Scaling of the data steps and of tokenisation with the corpus, from 1 MB to 5 GB: megabytes per second, and peak
memory.

python -m benchmarks scaling_corpus                    # 1, 10 and 100 MB
python -m benchmarks.scaling_corpus --gigabytes 5      # hours: a separate record, whose points join the same plots
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import ClassVar

from benchmarks import large_corpus
from benchmarks.checkouts import ROOT, checkout
from benchmarks.harness import company, page, record
from benchmarks.harness.benchmark import Benchmark, Setting, all_benchmarks
from benchmarks.harness.growth import exponent
from benchmarks.harness.memory import sampled
from benchmarks.harness.record import Figure, Measured, Plot, Point, Record, Series
from pipelines.lineage import hardware
from tests.pipelines.corpora.small_dataset import write_small_dataset

MEGABYTES = (1, 10, 100)
GIGABYTES = (1, 5)
"""Sizes that are measured by hand."""
STEPS, TOKENISING = "data steps", "tokenise and pack"
PARAMS = """\
runtime: {{memory: 1GiB}}
datasets:
  large:
    general: [{{path: "{texts}"}}]
    domain: [{{path: texts/domain.csv, text: body}}]
    task: {{train: texts/train.jsonl, test: texts/test.jsonl, text: sentence, label: topic, labels_per_class: 8}}
"""
"""A small domain corpus and task, so that the general corpus dominates the measurement."""


class ScalingCorpus(Benchmark):
    """Both work beyond memory: what a step holds is bounded by `runtime.memory`. Start-up (DVC starts a process for
    each step) is included, and dominates the time of a small corpus."""

    name = "scaling_corpus"
    what = (
        "All data steps (`dvc repro`: pin to card) on a corpus under `runtime.memory: 1GiB`, followed by tokenising "
        "and packing it on disk with all cores: megabytes of JSON lines per second, start-up included, and peak memory "
        "of all processes together (shared pages divided among them). An exponent b means that y grows as xᵇ."
    )
    slow = True
    by_hand: ClassVar[dict[str, str]] = {
        f"scaling_corpus-{size}GB": f"python -m benchmarks.scaling_corpus --gigabytes {size}" for size in GIGABYTES
    }

    def measure(self, setting: Setting) -> Measured:
        parts = [of_size(setting, one / 1000) for one in MEGABYTES[: 1 if setting.quick else None]]
        whole = page.joined([part.plots for part in parts])
        fits = [
            exponent(f"{plot.y}, {series.name}: exponent", series.points) for plot in whole for series in plot.series
        ]
        figures = [*(figure for part in parts for figure in part.figures), *(fit for fit in fits if fit is not None)]
        return Measured(figures=tuple(figures), plots=tuple(whole))


def of_size(setting: Setting, gigabytes: float) -> Measured:
    """Speed and peak memory for a corpus of one size."""
    megabytes = 1000 * gigabytes
    texts = setting.work / "texts" / f"{megabytes:g}"
    large_corpus.make_texts(texts, round(megabytes * 1e6))
    folder = checkout(with_data=False)
    try:
        write_small_dataset(folder)
        (folder / "params.yaml").write_text(PARAMS.format(texts=texts), encoding="utf-8")
        peaks, seconds = large_corpus.run(folder)
        table = folder / "data" / "prepared" / "large" / "general"
        tokenising, peak = tokenised(
            table if table.exists() else table.with_suffix(".parquet"), folder, setting.threads
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    speeds = {STEPS: megabytes / seconds, TOKENISING: megabytes / tokenising}
    memory = {STEPS: max(peaks.values()) / 2**20, TOKENISING: peak / 2**20}
    what = f"{megabytes:,.0f} MB"
    figures = [Figure(name=f"{name}, {what}", value=value, unit="MB/s") for name, value in speeds.items()]
    figures += [
        Figure(name=f"peak memory of {name}, {what}", value=value, unit="MiB") for name, value in memory.items()
    ]
    return Measured(figures=tuple(figures), plots=(
        plot("speed", "Speed by size of the corpus", "MB/s", megabytes, speeds),
        plot("memory", "Peak memory by size of the corpus", "MiB", megabytes, memory),
    ))  # fmt: skip


def plot(name: str, title: str, unit: str, megabytes: float, values: dict[str, float]) -> Plot:
    """One point of each series."""
    series = tuple(Series(name=one, points=(Point(x=megabytes, y=value),)) for one, value in values.items())
    return Plot(name=name, title=title, x="megabytes of the corpus", y=unit, series=series)


def tokenised(table: Path, folder: Path, processes: int) -> tuple[float, int]:
    """Seconds, and peak memory of all processes in bytes."""
    report = folder / "tokenised.json"
    command = [sys.executable, "-m", "benchmarks.harness.tokenise", str(table), str(folder / "tokens"), str(processes)]
    with report.open("w") as output, subprocess.Popen(command, cwd=ROOT, stdout=output) as process:
        peak = max(sampled(process), default=0)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return float(json.loads(report.read_bytes())["seconds"]), peak


def main() -> None:
    """Measure one size by hand, write its record, and render the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=int, choices=GIGABYTES, required=True)
    options = parser.parse_args()
    begun, threads = monotonic(), hardware.cores()
    run = os.environ[company.MARK] = uuid.uuid4().hex
    with tempfile.TemporaryDirectory(prefix="cursus-bench-") as work, company.Watch(run) as watch:
        measured = of_size(Setting(quick=False, threads=threads, work=Path(work)), options.gigabytes)
    made = Record(
        name=f"{ScalingCorpus.name}-{options.gigabytes}GB", what=f"{ScalingCorpus.what} Measured by hand.",
        measured=measured,
        threads=threads, machine=company.machine(), company=watch.company(), versions=company.versions(),
        commit=company.commit(),
        date=datetime.now(UTC).isoformat(timespec="seconds"), seconds=round(monotonic() - begun, 1),
    )  # fmt: skip
    record.write(made)
    page.write(all_benchmarks())


if __name__ == "__main__":
    main()
