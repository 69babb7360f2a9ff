"""Several ranks, on this machine, over gloo: the same batches and losses as one; and what happens when one of them
dies.

Tolerance: sums of float32 are taken in another order, which in 12 steps of AdamW moves a loss by less than 1 part in
10⁴. Dropout is off: each rank draws its own masks, so with it the losses agree in distribution only.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from safetensors.torch import load_file

from pipelines.errors import RecipeError, StageError
from pipelines.lineage.results import CHECKPOINTS, METRICS, RESULT, Result
from pipelines.lineage.store import SCRATCH
from pipelines.parts.annotations.lexicon import Lexicon
from pipelines.parts.corruptions.token_mask import TokenMask
from pipelines.parts.embeddings.languages import LanguageEmbedding
from pipelines.parts.layouts.packed_documents import PackedDocuments
from pipelines.parts.objectives.masked_lm import MaskedLM
from pipelines.recipe.job import Job, Runtime
from tasks.launchers.local import LocalLauncher
from tests.forked_ranks import ForkedSession
from tests.pipelines.training.conftest import Trained
from tests.steps import ROOT

STEPS = 12


class Silent:
    """Hears nothing but the result."""

    def __init__(self) -> None:
        self.results = list[Result]()

    def progressed(self, job: Job, lines: list[dict[str, Any]]) -> None: ...

    def finished(self, job: Job, result: Result) -> None:
        self.results.append(result)


class Killer(Silent):
    """Kills the second of `ranks` once, when there is a checkpoint to go on from."""

    def __init__(self, ranks: Callable[[], list[psutil.Process]]) -> None:
        super().__init__()
        self._ranks, self.killed = ranks, False

    def progressed(self, job: Job, lines: list[dict[str, Any]]) -> None:
        if not self.killed and any((job.out / SCRATCH / CHECKPOINTS).glob("step-*")):
            self._ranks()[1].kill()
            self.killed = True


def shortened(job: Job, dropout: float = 0.0, **runtime: Any) -> Job:
    """`job` for a few steps."""
    plain = job.stage.kind.reads_plain_text
    budget = job.stage.budget
    few: dict[str, Any] = {"tokens": STEPS * budget.batch_tokens} if plain else {"epochs": 2, "patience": None}
    stage = job.stage.model_copy(update={"dropout": dropout, "budget": budget.model_copy(update=few)})
    return job.model_copy(
        update={"stage": stage, "runtime": Runtime(**{"log_every": 3, "checkpoint_every": 4} | runtime)}
    )


def lines(out: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (out / METRICS).read_text().splitlines()]


@pytest.fixture(scope="module")
def alone(trained: Trained, forked: ForkedSession, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a stage as one rank trains it, computed when it is first asked for."""
    made: dict[str, Path] = {}

    def of(stage: str) -> Path:
        if stage not in made:
            job = shortened(trained.job(stage, tmp_path_factory.mktemp("alone") / stage), devices=1)
            forked.run(job, Silent())
            made[stage] = job.out
        return made[stage]

    return of


def test_divided_weights_train_as_whole_ones_and_are_handed_over_whole(
    trained: Trained, forked: ForkedSession, alone: Callable[[str], Path], tmp_path: Path
) -> None:
    """FSDP on two ranks against one: the same losses, a whole model, and a resumed run ends in the same weights."""
    folders = {"one": alone("classify")}
    for name in ("two", "disturbed"):
        job = shortened(trained.job("classify", tmp_path / name), devices=2, distribution="fsdp")
        if name == "disturbed":
            with pytest.raises(StageError, match="killed by SIGKILL"):
                forked.run(job, Killer(forked.ranks))
        forked.run(job, heard := Silent())
        assert bool(heard.results[0].resumed_from_step) == (name == "disturbed")
        folders[name] = job.out
    for mine, theirs in zip(lines(folders["one"]), lines(folders["two"]), strict=True):
        assert theirs == pytest.approx(mine, rel=1e-4, abs=1e-5)
    one, two, disturbed = (load_file(folder / "model.safetensors") for folder in folders.values())
    for key, value in one.items():
        torch.testing.assert_close(two[key], value, rtol=1e-3, atol=1e-4)
        assert torch.equal(two[key], disturbed[key]), key


@pytest.mark.parametrize(
    ("stage", "runtimes"),
    [
        ("general", [{"devices": 2}, {"devices": 4}]),
        ("classify", [{"devices": 1, "device_tokens": 64}, {"devices": 4}]),
    ],
)
def test_any_number_of_ranks_has_the_losses_of_one(
    stage: str,
    runtimes: list[dict[str, int]],
    trained: Trained,
    forked: ForkedSession,
    alone: Callable[[str], Path],
    tmp_path: Path,
) -> None:
    one = lines(alone(stage))
    assert Result.model_validate_json((alone(stage) / RESULT).read_bytes()).steps == one[-1]["step"]
    assert len(one) >= 4 and len({line.get("train/loss") for line in one}) >= 4, "nothing was learned"
    for number, runtime in enumerate(runtimes):
        job = shortened(trained.job(stage, tmp_path / str(number)), **runtime)
        forked.run(job, heard := Silent())
        other = lines(job.out)
        assert heard.results[0].steps == other[-1]["step"]
        assert [line["step"] for line in other] == [line["step"] for line in one]
        for mine, theirs in zip(one, other, strict=True):
            assert theirs == pytest.approx(mine, rel=1e-4, abs=1e-5)


def test_ranks_share_rows_of_whole_documents(trained: Trained, forked: ForkedSession, tmp_path: Path) -> None:
    curves = []
    for runtime in ({"devices": 1}, {"devices": 2}):
        job = shortened(trained.job("general", tmp_path / str(len(curves))), **runtime)
        parts = {"layout": PackedDocuments(), "corruption": (TokenMask(),), "objective": (MaskedLM(),)}
        job = job.model_copy(update={"stage": job.stage.model_copy(update=parts)})
        forked.run(job, Silent())
        curves.append(lines(job.out))
    alone, together = curves
    assert len(alone) >= 4 and len({line.get("train/loss") for line in alone}) >= 4, "nothing was learned"
    for mine, theirs in zip(alone, together, strict=True):
        assert theirs == pytest.approx(mine, rel=1e-4, abs=1e-5)


def test_ranks_share_the_channels_of_their_rows(trained: Trained, forked: ForkedSession, tmp_path: Path) -> None:
    words = tmp_path / "words.tsv"
    words.write_text("the\tfirst\na\tfirst\nof\tsecond\nto\tsecond\n", encoding="utf-8")
    annotation = Lexicon(channel="languages", file=words, values=("first", "second"))
    curves = []
    for number, runtime in enumerate(({"devices": 1}, {"devices": 2}, {"devices": 4})):
        job = shortened(trained.job("general", tmp_path / str(number)), **runtime)
        assert job.stage.backbone is not None
        backbone = job.stage.backbone.model_copy(update={"embeddings": (LanguageEmbedding(),)})
        parts = {"annotations": (annotation,), "backbone": backbone}
        job = job.model_copy(update={"stage": job.stage.model_copy(update=parts)})
        forked.run(job, Silent())
        curves.append(lines(job.out))
    alone, *together = curves
    assert len(alone) >= 4 and len({line.get("train/loss") for line in alone}) >= 4, "nothing was learned"
    for curve in together:
        for mine, theirs in zip(alone, curve, strict=True):
            assert theirs == pytest.approx(mine, rel=1e-4, abs=1e-5)


def test_a_rank_that_is_killed_costs_nothing_but_time(trained: Trained, forked: ForkedSession, tmp_path: Path) -> None:
    """torchrun starts both ranks again."""
    undisturbed, disturbed = (
        shortened(trained.job("general", tmp_path / name), dropout=0.1, devices=2) for name in ("whole", "disturbed")
    )
    forked.run(undisturbed, Silent())
    heard = Killer(partial(ranks, os.getpid()))
    with LocalLauncher(restarts=1).open(ROOT, tmp_path / "log") as launcher:
        launcher.run(disturbed, heard)
    assert heard.killed and heard.results[0].resumed_from_step, "it began anew"
    for file in ("model.safetensors", METRICS):
        assert (undisturbed.out / file).read_bytes() == (disturbed.out / file).read_bytes()


def test_ranks_that_are_told_to_end_leave_one_checkpoint_and_no_process(trained: Trained, tmp_path: Path) -> None:
    job = shortened(trained.job("general", tmp_path / "out"), devices=2, checkpoint_every=10**6)
    job = job.model_copy(
        update={
            "stage": job.stage.model_copy(
                update={"budget": job.stage.budget.model_copy(update={"tokens": 10**4 * job.stage.budget.batch_tokens})}
            )
        }
    )

    class Interrupted(Silent):
        def progressed(self, job: Job, lines: list[dict[str, Any]]) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), LocalLauncher().open(ROOT, tmp_path / "log") as launcher:
        launcher.run(job, Interrupted())
    deadline = time.monotonic() + 30
    while ranks(os.getpid()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not ranks(os.getpid()) and not (job.out / RESULT).exists()
    assert len(list((job.out / SCRATCH / CHECKPOINTS).glob("step-*"))) == 1


def test_a_batch_that_ranks_cannot_share_is_refused_once(
    trained: Trained, forked: ForkedSession, tmp_path: Path
) -> None:
    job = shortened(trained.job("general", tmp_path / "out"), devices=3)
    with pytest.raises(
        RecipeError, match=r"training\.devices: 3 ranks cannot evenly share a batch of 8 corruption shards"
    ):
        forked.run(job, Silent())
    job = shortened(trained.job("general", tmp_path / "pieces"), devices=1, device_tokens=256)
    with pytest.raises(RecipeError, match="objective contrastive compares the rows of a batch with each other"):
        forked.run(job, Silent())


def ranks(parent: int) -> list[psutil.Process]:
    """The ranks that `parent` started, in their order."""
    found = []
    for child in psutil.Process(parent).children(recursive=True):
        try:
            if "pipelines.training.ranks.rank" in child.cmdline() and child.status() != psutil.STATUS_ZOMBIE:
                found.append((int(child.environ()["RANK"]), child))
        except psutil.NoSuchProcess:
            continue
    return [child for _, child in sorted(found, key=lambda pair: pair[0])]
