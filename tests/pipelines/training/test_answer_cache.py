"""A frozen teacher reads every item once, and what is remembered of it is what it would say again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from pipelines.models.opening import OpenedModel, open_model
from pipelines.parts.objectives import Batch, Signals
from pipelines.training.assembly import answer_cache
from pipelines.training.assembly.answer_cache import BATCH_SIZE, AnswerCache
from pipelines.training.batches.examples import ExampleBatches
from pipelines.training.loop.inputs import batches_of, tasks_of
from pipelines.vocabulary import Field, Signal
from tests.pipelines.training.conftest import Trained

WANTED = frozenset({Signal.LOGITS, Signal.HIDDEN_STATES})


class Teacher:
    """The trained classifier, which counts how often it is asked."""

    def __init__(self, opened: OpenedModel) -> None:
        self.opened, self.asked = opened, 0

    @torch.no_grad()
    def __call__(self, batch: Batch, wanted: frozenset[Signal]) -> Signals:
        self.asked += 1
        return self.opened.record.head.signals(self.opened.network, batch, wanted)


@pytest.fixture
def batches(trained: Trained, tmp_path: Path) -> ExampleBatches:
    job = trained.job("small", tmp_path / "out")
    made = batches_of(job, tasks_of(job), open_model(trained.folder("classify"), "cpu").tokenizer).lines[0]
    assert isinstance(made, ExampleBatches)
    return made


@pytest.fixture
def teacher(trained: Trained) -> Teacher:
    return Teacher(open_model(trained.folder("classify"), "cpu"))


def epoch(batches: ExampleBatches, number: int) -> list[dict[Field, Any]]:
    """The batches of an epoch, whatever the stage's budget."""
    steps = range(number * batches.steps_per_epoch, (number + 1) * batches.steps_per_epoch)
    return [{Field(name): value for name, value in batches.micro_batch(step, 0, 1).items()} for step in steps]


def test_every_item_is_asked_once_and_answered_in_any_company(teacher: Teacher, batches: ExampleBatches) -> None:
    remembered = AnswerCache(teacher, batches.items)
    read = [batch for number in range(3) for batch in epoch(batches, number)]
    answers = [remembered(batch, WANTED) for batch in read]
    assert teacher.asked == -(-len(batches.items) // BATCH_SIZE)
    for batch, answer in zip(read, answers, strict=True):
        said = teacher(batch, WANTED)
        torch.testing.assert_close(answer[Signal.LOGITS], said[Signal.LOGITS], rtol=1e-4, atol=1e-5)
        real = batch[Field.ATTENTION_MASK].bool()
        assert len(answer[Signal.HIDDEN_STATES]) == len(said[Signal.HIDDEN_STATES]) > 2
        for mine, theirs in zip(answer[Signal.HIDDEN_STATES], said[Signal.HIDDEN_STATES], strict=True):
            assert mine.shape == theirs.shape and not mine[~real].any()
            # bfloat16 keeps 8 bits of a number
            torch.testing.assert_close(mine[real].float(), theirs[real], rtol=2**-8, atol=1e-5)


def test_what_an_interruption_forgets_is_remembered_again_bit_for_bit(
    teacher: Teacher, batches: ExampleBatches
) -> None:
    late = epoch(batches, 2)[-1]
    before = AnswerCache(teacher, batches.items)
    for batch in epoch(batches, 0):
        before(batch, WANTED)
    then, now = before(late, WANTED), AnswerCache(teacher, batches.items)(late, WANTED)
    assert torch.equal(then[Signal.LOGITS], now[Signal.LOGITS])
    assert all(map(torch.equal, then[Signal.HIDDEN_STATES], now[Signal.HIDDEN_STATES]))


def test_more_than_there_is_room_for_is_asked_each_time(
    teacher: Teacher, batches: ExampleBatches, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_cache, "CAPACITY", 1000)
    remembered = AnswerCache(teacher, batches.items)
    batch = epoch(batches, 0)[0]
    said = [remembered(batch, WANTED) for _ in range(3)]
    assert teacher.asked == 1 + 3, "one try of the pass, then every time"
    assert all(map(torch.equal, said[0][Signal.HIDDEN_STATES], teacher(batch, WANTED)[Signal.HIDDEN_STATES]))


def test_rows_that_are_no_items_any_more_are_asked(teacher: Teacher, batches: ExampleBatches) -> None:
    remembered = AnswerCache(teacher, batches.items)
    batch = epoch(batches, 0)[0]
    changed = {name: value for name, value in batch.items() if name is not Field.ITEMS}
    changed[Field.INPUT_IDS] = batch[Field.INPUT_IDS].flip(0)
    expected = teacher(changed, WANTED)[Signal.LOGITS]
    assert torch.equal(remembered(changed, WANTED)[Signal.LOGITS], expected)
    assert not torch.equal(remembered(batch, WANTED)[Signal.LOGITS], expected)
