"""Training examples that are changed in every epoch: by the seed, the epoch and the example, and by nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from pipelines.lineage.provenance import DataSource
from pipelines.lineage.results import METRICS
from pipelines.models.opening import open_model
from pipelines.parts.heads import Head
from pipelines.recipe.augmentations import Augmentation
from pipelines.recipe.job import Job, Runtime
from pipelines.task_families import Row, Task
from pipelines.task_families.encoding import EncodedExamples
from pipelines.task_families.text_classification import TextClassification
from pipelines.training.assembly.own_tokens import OwnAugmentedRows, OwnTokens
from pipelines.training.batches.augmented_examples import AugmentedExamples, changes
from pipelines.training.batches.examples import ExampleBatches
from pipelines.training.ranks.run import run
from pipelines.vocabulary import Field, Signal
from tests.pipelines.training.conftest import Trained
from tests.pipelines.training.small_recipe import RECIPE
from tests.pipelines.training.test_resume_of_shapes import interrupted
from tests.small_corpus import documents
from tests.steps import job_of, library_of, plan_of

CHANGED = (
    RECIPE.partition("  classify:")[0]
    + """\
  clean:
    kind: finetune
    start: general
    corpus: task
    head: sequence_classification
    objective: cross_entropy
    strategy: full
    optimizer: {lr: 1.0e-3, precision: 32-true}
    budget: {epochs: 3, batch_texts: 4, length: 48}
  noisy:
    like: clean
    augmentation: [{attack: swapped_letters, rate: 0.5}, {attack: {name: letter_case, to: upper}, share: 0.5}]
  taught:
    like: noisy
    teacher: clean
    objective: [cross_entropy, match_logits]
"""
)
ROWS: list[Row] = [{"text": text[:120], "label": "a"} for text in documents("logging", "json")[:9]]
TASK = Task(TextClassification(), ("a", "b"))
NOISE = (Augmentation.model_validate({"attack": "swapped_letters", "rate": 1.0}),)
LOGITS = frozenset({Signal.LOGITS})


@pytest.fixture(scope="module")
def jobs(
    trained: Trained, tables: dict[str, Path], sources: dict[str, DataSource], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Job]:
    """Stage → the job that computed it, without interruption."""
    root = tmp_path_factory.mktemp("augmented")
    made, folders = {}, {}
    for step in plan_of(library_of(root, small=CHANGED), "small", sources).steps:
        folders[step.fingerprint] = trained.folder("general") if step.name == "general" else root / step.name
        if step.name != "general":
            made[step.name] = job_of(step, folders, tables, root / step.name, Runtime(log_every=1, checkpoint_every=4))
            run(made[step.name])
    return made


def encoding(trained: Trained) -> tuple[EncodedExamples, AugmentedExamples]:
    head, tokenizer = Head.model_validate("sequence_classification"), open_model(trained.folder("classify"), "cpu")

    def encode(rows: Sequence[Row]) -> EncodedExamples:
        return head.encode(rows, TASK, tokenizer.tokenizer, 32)

    clean = encode(ROWS)
    return clean, AugmentedExamples(clean, encode, changes(NOISE, TASK.family, 5, "en"))


def test_an_example_depends_on_seed_epoch_and_itself_alone(trained: Trained) -> None:
    clean, augmented = encoding(trained)
    change = changes(NOISE, TASK.family, 5, "en")
    assert change(ROWS[3], 2, 3) == change(ROWS[3], 2, 3) != ROWS[3]
    assert len({change(ROWS[3], epoch, 3)["text"] for epoch in range(6)}) > 3
    assert changes(NOISE, TASK.family, 6, "en")(ROWS[3], 2, 3) != change(ROWS[3], 2, 3)
    assert all(change(row, 0, number)["label"] == "a" for number, row in enumerate(ROWS))
    unlabelled: Row = {"text": ROWS[3]["text"]}
    assert change(unlabelled, 2, 3) == {"text": change(ROWS[3], 2, 3)["text"]}
    batches = ExampleBatches(clean, size=4, steps=9, seed=1, augmented=augmented)
    plain = ExampleBatches(clean, size=4, steps=9, seed=1)
    for step in range(9):
        whole = batches.micro_batch(step, 0, 1)
        # the same items as without, whichever rank and micro-batch reads them
        assert torch.equal(whole["items"] % len(ROWS), plain.micro_batch(step, 0, 1)["items"])
        assert torch.equal(whole["items"] // len(ROWS), torch.full_like(whole["items"], step // 3))
        assert torch.equal(whole["labels"], plain.micro_batch(step, 0, 1)["labels"])
        parts = [batches.micro_batch(step, number, 2) for number in range(2) if batches.micro_batch(step, number, 2)]
        rows = [row[row != 0].tolist() for part in parts for row in part["input_ids"]]
        assert rows == [row[row != 0].tolist() for row in whole["input_ids"]]
    first, second = ({tuple(row[row > 0].tolist()) for step in range(start, start + 3)
                      for row in batches.micro_batch(step, 0, 1)["input_ids"]} for start in (0, 3))  # fmt: skip
    assert len(first & second) < 3, "each epoch reads others"
    assert batches.items is None and plain.items is clean


def test_of_an_example_of_several_rows_the_last_stands_in_for_what_is_gone() -> None:
    class Rows:
        """Words of an example, two to a row."""

        def __init__(self, rows: Sequence[Row]) -> None:
            pieces = [row["text"].split() for row in rows]
            self.examples = rows
            self.owners = np.repeat(np.arange(len(rows)), [-(-len(words) // 2) for words in pieces])
            self.rows = [words[at : at + 2] for words in pieces for at in range(0, len(words), 2)]

        def __len__(self) -> int:
            return len(self.owners)

        def batch(self, chosen: np.ndarray) -> dict[Field, np.ndarray]:  # type: ignore[type-arg]
            return {Field.LABELS: np.array([int(self.rows[index][0]) for index in chosen])}

    items = Rows([{"text": "1 2 3 4 5"}, {"text": "6 7"}])

    def shortened(row: Row, epoch: int, example: int) -> Row:
        return {"text": row["text"][: 3 + 4 * epoch]}

    shorter = AugmentedExamples(items, Rows, shortened)  # type: ignore[arg-type]
    for epoch, expected in ((0, [1, 1, 1, 6]), (1, [1, 3, 3, 6]), (2, [1, 3, 5, 6])):
        ids = shorter.ids(epoch, np.arange(4))
        assert shorter.batch(ids)["labels"].tolist() == expected


def test_a_teacher_reads_what_its_student_reads(trained: Trained, tmp_path: Path) -> None:
    """Also in tokens of its own, and whatever the epoch."""
    teacher = open_model(trained.folder("classify"), "cpu")
    _, augmented = encoding(trained)
    own = augmented.encoded_by(OwnTokens(teacher, tmp_path).encode)
    read = OwnAugmentedRows(lambda batch, asked: teacher.record.head.signals(teacher.network, batch, asked), own)
    ids = torch.from_numpy(augmented.ids(3, np.array([2, 7])))
    answers = read({Field.ITEMS: ids}, LOGITS)[Signal.LOGITS]
    change = changes(NOISE, TASK.family, 5, "en")
    for row, number in enumerate((2, 7)):
        text = teacher.tokenizer(change(ROWS[number], 3, number)["text"], truncation=True, return_tensors="pt")
        fields = {Field(name): value for name, value in text.items()}
        alone = teacher.record.head.signals(teacher.network, fields, LOGITS)[Signal.LOGITS]
        torch.testing.assert_close(answers[row], alone[0], rtol=1e-4, atol=1e-5)


def test_a_stage_learns_from_changed_examples(jobs: dict[str, Job]) -> None:
    clean, noisy = (load_file(jobs[name].out / "model.safetensors") for name in ("clean", "noisy"))
    assert clean.keys() == noisy.keys() and not all(torch.equal(value, noisy[name]) for name, value in clean.items())
    assert all(bool(value.isfinite().all()) for value in noisy.values())


@pytest.mark.parametrize("stage", ["noisy", "taught"])
def test_an_interrupted_stage_ends_as_if_never_interrupted(stage: str, jobs: dict[str, Job], tmp_path: Path) -> None:
    job = jobs[stage].model_copy(update={"out": tmp_path})
    interrupted(job, 11)
    assert run(job).resumed_from_step == 8
    for file in ("model.safetensors", METRICS):
        assert (job.out / file).read_bytes() == (jobs[stage].out / file).read_bytes(), file
