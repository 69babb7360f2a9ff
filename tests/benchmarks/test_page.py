"""docs/performance.md shows the records; a record is whole or absent; every goal is listed, measured or not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import psutil
import pytest

from benchmarks.harness import page, record
from benchmarks.harness.benchmark import all_benchmarks
from benchmarks.harness.company import MARK, Watch
from benchmarks.harness.record import Company, Figure, Goal, Machine, Measured, Plot, Point, Record, Series
from benchmarks.masked_lm import USUAL
from tests.steps import ROOT


def made(
    value: float, others: float = 0.0, ends: tuple[float, float] = (12.5, 13.5), *, day: int = 1,
    processor: str = "two cores", what: str = "",
) -> Record:  # fmt: skip
    return Record(
        name="masked_lm", what=what, threads=2, commit="abc", date=f"2026-01-{day:02}T00:00:00+00:00", seconds=1,
        versions={}, machine=Machine(processor=processor, cores=2, memory_gib=24, platform=""),
        company=Company(load_before=0, others=others, stolen=0),
        measured=Measured(
            figures=(Figure(name=f"tiny, 128 tokens: against {USUAL}", value=value, low=ends[0], high=ends[1]),)
        ),
    )  # fmt: skip


def test_the_page_is_what_its_records_give() -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.render(all_benchmarks()), "run: python -m benchmarks --page"


def test_the_drawings_are_what_their_records_give() -> None:
    drawn = {path.name: path.read_text(encoding="utf-8") for path in record.FOLDER.glob("*.svg")}
    assert drawn == page.drawings(all_benchmarks()), "run: python -m benchmarks --page"


def test_points_that_are_measured_by_hand_join_the_others(tmp_path: Path) -> None:
    corpus = all_benchmarks()["scaling_corpus"]
    nothing = page.render(all_benchmarks(), tmp_path)
    unmeasured = next(line for line in nothing.splitlines() if line.startswith("Without a goal, and not measured:"))
    assert "## scaling_corpus" not in nothing and "`scaling_corpus`" in unmeasured
    for name, megabytes in (("scaling_corpus", (100.0, 1.0)), ("scaling_corpus-5GB", (5000.0,))):
        points = tuple(Point(x=one, y=one / 10, low=one / 20, high=one / 5) for one in megabytes)
        plot = Plot(name="speed", title="Speed", x="MB", y="MB/s", series=(Series(name="data steps", points=points),))
        measured = Measured(figures=(), plots=(plot,))
        record.write(made(1).model_copy(update={"name": name, "measured": measured}), tmp_path)
    told = page.render(all_benchmarks(), tmp_path)
    assert "](../benchmarks/records/scaling_corpus-speed.svg)" in told
    assert f"scaling_corpus-1GB: not measured (`{corpus.by_hand['scaling_corpus-1GB']}`)" in told
    assert "scaling_corpus-5GB: not measured" not in told
    (drawn,) = page.drawings(all_benchmarks(), tmp_path).values()
    shown = [element.text for element in ElementTree.fromstring(drawn).iter("{http://www.w3.org/2000/svg}title")]
    assert shown == ["1: 0.1", "100: 10", "5k: 500"]


def test_every_goal_is_met_missed_undecided_by_the_interval_or_not_measured(tmp_path: Path) -> None:
    row = f"| tiny, 128 tokens: against {USUAL}: ≥ 12 x | `masked_lm` |"
    assert f"{row} not measured |" in page.render(all_benchmarks(), tmp_path)
    record.write(made(13), tmp_path)
    assert f"{row} 13 x (12.5 to 13.5): met |" in page.render(all_benchmarks(), tmp_path)
    record.write(made(12.9, ends=(11.9, 13.5)), tmp_path)
    assert f"{row} 12.9 x (11.9 to 13.5): undecided |" in page.render(all_benchmarks(), tmp_path)
    record.write(made(11.5, others=0.4, ends=(11.1, 11.9)), tmp_path)
    told = page.render(all_benchmarks(), tmp_path)
    assert f"{row} 11.5 x (11.1 to 11.9): **missed**, on a busy machine |" in told
    assert "**the machine was busy**: others used 40%" in told


def test_the_figure_of_a_goal_is_that_of_the_median_day_on_one_kind_of_processor(tmp_path: Path) -> None:
    row = f"| tiny, 128 tokens: against {USUAL}: ≥ 12 x | `masked_lm` |"

    def shown() -> str:
        lines = page.render(all_benchmarks(), tmp_path).splitlines()
        return next(line.removeprefix(row) for line in lines if line.startswith(row))

    for day, value in ((1, 14), (2, 11)):
        record.write(made(value, ends=(value - 1, value + 1), day=day), tmp_path)
    assert shown() == " 11 x (10 to 12), of 2 days: undecided |", "of two days the worse one"
    record.write(made(13, day=3), tmp_path)
    assert shown() == " 13 x (12.5 to 13.5), of 3 days: met |"
    record.write(made(15, ends=(14, 16), day=3), tmp_path)
    assert shown() == " 14 x (13 to 15), of 3 days: met |", "the last of a day replaces those before"
    record.write(made(5, ends=(4, 6), day=4, processor="four cores"), tmp_path)
    assert shown() == " 5 x (4 to 6): **missed** | 14 x (13 to 15), of 3 days: met |", (
        "each kind of processor has its own median"
    )
    assert "| goal | benchmark | four cores | two cores |" in page.render(all_benchmarks(), tmp_path)
    table = [line for line in page.render(all_benchmarks(), tmp_path).splitlines() if line.startswith("| tiny, 128")]
    assert any(
        line.endswith("| 14 x (13 to 15) | 11 x (10 to 12) | 15 x (14 to 16) | 5 x (4 to 6) |") for line in table
    )
    record.write(made(20, ends=(19, 21), day=5, what="measured in another way"), tmp_path)
    assert shown() == " 5 x (4 to 6): **missed** | 20 x (19 to 21): met |", (
        "days on which something else was measured count only for a kind of processor that has no other"
    )
    assert "On 2026-01-04 this was measured: " in page.render(all_benchmarks(), tmp_path)
    assert "On 2026-01-03" not in page.render(all_benchmarks(), tmp_path)


@pytest.mark.parametrize(
    ("processor", "kind"),
    [
        ("Intel(R) Xeon(R) Processor fma avx2 avx512f avx512_bf16 amx_bf16", "Intel Xeon, amx_bf16"),
        ("AMD EPYC fma avx2 avx512f avx512_bf16", "AMD EPYC, avx512_bf16"),
        ("arm64", "arm64"),
    ],
)
def test_a_kind_of_processor_has_a_short_name(processor: str, kind: str) -> None:
    assert page.kind_of(processor) == kind


def test_the_record_that_another_replaces_stays_among_the_days(tmp_path: Path) -> None:
    record.write(made(14, day=1, processor="four cores"), tmp_path)
    for day in (tmp_path / record.DAYS).rglob("*.json"):  # a record of before there were any
        day.unlink()
    record.write(made(13, day=2), tmp_path)
    assert [one.day for one in record.read_days("masked_lm", tmp_path)] == ["2026-01-01", "2026-01-02"]


def test_a_goal_may_be_a_bound_from_above_or_from_both_sides_and_a_figure_without_interval() -> None:
    seconds = Figure(name="smoke", value=58.0, unit="s")
    assert Goal(figure="smoke", at_most=60, unit="s").verdict(seconds) == "met"
    assert Goal(figure="smoke", at_most=50, unit="s").verdict(seconds) == "missed"
    share = Figure(name="share", value=1.0, low=0.96, high=1.04)
    assert Goal(figure="share", at_least=0.95, at_most=1.05).verdict(share) == "met"
    assert Goal(figure="share", at_least=0.97, at_most=1.05).verdict(share) == "undecided"
    assert Goal(figure="share", at_most=0.95).verdict(share) == "missed"


def test_what_the_issue_asks_for_is_listed(tmp_path: Path) -> None:
    told = page.render(all_benchmarks(), tmp_path)
    goals = (
        "tiny, 512 tokens: of the matmul floor: ≥ 0.55",
        "small, 512 tokens: against HF Trainer at its best in our environment: ≥ 2 x",
        "T5: against HF Trainer at its best in our environment: ≥ 2 x", "against plain rensa: ≥ 1 x",
        "ELECTRA: against a plain loop: ≥ 3 x", "XLNet: against HF Trainer: ≥ 3 x",
        "against HF Trainer, padded: ≥ 3.8 x",
        "against HF Trainer, grouped by length: ≥ 1.3 x",
        "against a plain loop that keeps the teacher's answers: ≥ 2 x",
        "added to a step: ≤ 0.6 ms", "against run_mlm.py's recipe: ≥ 4.5 x", "tokens read: ≥ 40 M tokens/s",
        "reading, of a training step: ≤ 2 %", "no server up: ≤ 20 s", "a server up: ≤ 5 s", "cursus --help: ≤ 0.5 s",
        "a stage's fixed cost: ≤ 12 s", "store find: ≤ 0.2 s", "standard deviations between seeds: ≤ 2",
        "batch 1: ≥ 3.8 x", "batch 32: ≥ 4 x", "against HF Trainer (bf16, SDPA, compiled): ≥ 2 x",
        "error of a recipe's estimate, with history: ≤ 30 %",
    )  # fmt: skip
    assert [goal for goal in goals if goal not in told] == []


def test_a_killed_writer_leaves_a_whole_record(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from benchmarks.harness import record\n"
        "from tests.benchmarks.test_page import made\n"
        "while True: record.write(made(13), Path(sys.argv[1]))"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT) as process:
        while not (tmp_path / "masked_lm.json").exists():
            assert process.poll() is None
            time.sleep(0.01)
        for _ in range(20):
            assert record.read("masked_lm", tmp_path) == made(13)
        process.send_signal(signal.SIGKILL)
    assert record.read("masked_lm", tmp_path) == made(13)


def test_a_process_started_for_a_measurement_is_no_company() -> None:
    watch = Watch("this run")
    for run, ours in (("this run", True), ("another", False)):
        with subprocess.Popen(["sleep", "60"], env={**os.environ, MARK: run}) as process:
            seen = psutil.Process(process.pid)
            while not seen.environ():  # it has just begun
                time.sleep(0.01)
            found_ours = watch.ours(seen)
            process.kill()
        assert found_ours is ours


def test_a_quick_look_leaves_no_record() -> None:
    before = page.PAGE.read_bytes(), sorted(record.FOLDER.glob("*"))
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "help", "--quick"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "| cursus --help |" in done.stdout and "≤ 0.5 s" in done.stdout
    assert before == (page.PAGE.read_bytes(), sorted(record.FOLDER.glob("*")))
    refused = subprocess.run([sys.executable, "-m", "benchmarks", "hlep"], cwd=ROOT, capture_output=True, text=True)
    assert refused.returncode == 2 and "no benchmark is called 'hlep'. Known: " in refused.stderr
