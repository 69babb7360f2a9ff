"""A batch that is read in pieces has the loss of the whole batch: what each term is a mean over is counted rightly."""

from __future__ import annotations

from typing import Any

import pytest
import pytorch_lightning as lightning
import torch

from pipelines.models.opening import open_tokenizer
from pipelines.parts.objectives import Companion, Objective, TrainingStep
from pipelines.training.assembly.assemble import assemble
from pipelines.training.assembly.companions import CompanionFactory
from pipelines.training.batches.micro_batches import MicroBatch, MicroBatches, Partition
from pipelines.training.loop.inputs import batches_of, tasks_of
from pipelines.training.loop.trained_line import TrainedLine
from pipelines.vocabulary import Field, Signal
from tests.contracts.families import members
from tests.contracts.trials import job_for, tried, where_used

DRAWN = {"denoising_entities", "masked_target", "replaced_token_detection", "sampled_softmax"}
"""Terms, and objectives, of tokens or of entities that are drawn at random, for each piece anew."""
EVERY = [name for name in members("objectives") if ("objectives", name) in where_used()]


@pytest.mark.parametrize("name", [name for name in EVERY if not members("objectives")[name].compares_rows])
def test_pieces_by_their_counts_are_the_batch(name: str) -> None:
    where = where_used()["objectives", name]
    trial = tried(where, name)
    job = job_for(trial.stage, where, trial.folder if trial.stage.teacher is not None else None)
    (objective,) = trial.stage.objective
    assert isinstance(objective, Objective)
    tokenizer, tasks = open_tokenizer(trial.folder), tasks_of(job)
    lightning.seed_everything(0, verbose=False)
    network = assemble(job.stage, job.start, tokenizer, tasks, "cpu", job.features)
    companions = objective.companions(CompanionFactory(job, network))
    for one in (network, *(companion.network for companion in companions.values())):
        one.eval()
    batches = batches_of(job, tasks, tokenizer)
    lines = [TrainedLine("", job.stage, network, companions, batches.lines[0])]
    (whole,) = [one for one, _ in zip(MicroBatches(batches, Partition(), lines), range(1), strict=False)]
    expected = terms(objective, whole, network, companions, trial.stage.head)
    assert set(objective.counts(fields(whole), network)) == set(expected)
    found = dict.fromkeys(expected, 0.0)
    totals: dict[str, int] = {}
    for rank in range(2):
        for piece in list(zip(MicroBatches(batches, Partition(rank, 2, 2), lines), range(2), strict=False)):
            assert piece[0].term_counts is not None
            for term, value in terms(objective, piece[0], network, companions, trial.stage.head).items():
                count = piece[0].term_counts[term]
                totals[term] = totals.get(term, 0) + count
                found[term] += value * count if count else 0.0
    for term, value in expected.items():
        if DRAWN.isdisjoint({term, name}):
            assert found[term] / totals[term] == pytest.approx(value, rel=2e-5, abs=1e-6), term
            assert totals[term] == objective.counts(fields(whole), network)[term]


@pytest.mark.parametrize("name", EVERY)
def test_a_rank_without_rows_counts_only_what_is_the_whole_batchs(name: str) -> None:
    where = where_used()["objectives", name]
    trial = tried(where, name)
    job = job_for(trial.stage, where, trial.folder if trial.stage.teacher is not None else None)
    tokenizer, tasks = open_tokenizer(trial.folder), tasks_of(job)
    network = assemble(job.stage, job.start, tokenizer, tasks, "cpu")
    whole = batches_of(job, tasks, tokenizer)
    batches = OnlyTheLast(whole)
    lines = [TrainedLine("", job.stage, network, {}, whole.lines[0])]
    idle, busy = (next(iter(MicroBatches(batches, Partition(rank, 2, 1), lines))) for rank in range(2))
    assert (idle.counted, busy.counted) == (False, True)
    compares = any(isinstance(one, Objective) and one.compares_rows for one in trial.stage.objective)
    assert idle.term_counts == (busy.term_counts if compares else dict.fromkeys(busy.term_counts or {}, 0))


class OnlyTheLast:
    """Batches so small that the last piece is all of them."""

    start = 0

    def __init__(self, batches: Any) -> None:
        self.batches = batches

    def __len__(self) -> int:
        return 1

    def line_of(self, step: int) -> int:
        return 0

    def micro_batch(self, step: int, number: int, of: int) -> dict[str, Any]:
        return self.batches.micro_batch(step, 0, 1) if number == of - 1 else {}


@torch.no_grad()
def terms(
    objective: Objective, piece: MicroBatch, network: Any, companions: dict[str, Companion], head: Any
) -> dict[str, float]:
    """The objective's terms on one piece."""
    wanted: frozenset[Signal] = objective.required_signals
    step = TrainingStep(fields(piece), {}, network, lambda who, batch, w: companions[who].forward(batch, w), wanted)
    step.companions = companions
    teacher = next((one.network.config for one in companions.values() if not one.trains), None)
    torch.manual_seed(0)
    if (module := objective.build(network.config, teacher)) is not None:
        step.modules = {objective.name: module}
    step.batch = objective.rewrite(step)
    step.signals = head.signals(network, step.batch, wanted)
    return {name: float(value) for name, value in objective.loss(step).items()}


def fields(piece: MicroBatch) -> dict[Field, Any]:
    return {Field(name): value for name, value in piece.fields.items()}
