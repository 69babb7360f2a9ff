"""A teacher reads the examples of its student in tokens of its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from pipelines.errors import RecipeError
from pipelines.lineage.provenance import DataSource
from pipelines.lineage.results import METRICS
from pipelines.models.opening import open_lines, open_model
from pipelines.parts.heads import Head
from pipelines.parts.tokenizers.words import Words
from pipelines.recipe.job import Job, Runtime
from pipelines.task_families import Row, Task
from pipelines.task_families.text_classification import TextClassification
from pipelines.training.assembly.own_tokens import OwnRows, OwnTokens
from pipelines.training.metrics_log import read_metrics
from pipelines.training.ranks.run import run
from pipelines.vocabulary import Field, Signal
from tests.pipelines.training.conftest import Trained
from tests.pipelines.training.small_recipe import RECIPE
from tests.pipelines.training.test_resume_of_shapes import interrupted
from tests.small_corpus import documents
from tests.steps import job_of, library_of, plan_of

TAUGHT = (
    RECIPE.partition("  small:")[0]
    + """\
  taught:
    kind: finetune
    teacher: classify
    teacher_vocabulary: own_tokens
    corpus: task
    tokenizer: {name: words, vocab_size: 500, min_count: 1}
    backbone: {name: bilstm, hidden_size: 16, embedding_size: 16}
    head: sequence_classification
    objective: match_logits
    strategy: full
    optimizer: {lr: 1.0e-2, precision: 32-true}
    budget: {epochs: 6, batch_texts: 8, length: 32}
"""
)
LOGITS = frozenset({Signal.LOGITS})
TEXTS: list[Row] = [{"text": text[:200]} for text in documents("logging", "json")[:7]]


def test_its_answers_are_those_it_gives_to_the_texts(trained: Trained, tmp_path: Path) -> None:
    teacher = open_model(trained.folder("classify"), "cpu")
    words = Words(vocab_size=500, min_count=1).train(documents("logging"))
    head = Head.model_validate("sequence_classification")
    student = head.encode(TEXTS, Task(TextClassification(), ("a", "b")), words, 24, answers=False)
    items = OwnTokens(teacher, tmp_path).encode_items(student)
    calls: list[int] = []

    def forward(batch: object, requested: object) -> object:
        calls.append(len(batch[Field.INPUT_IDS]))  # type: ignore[index]
        return teacher.record.head.signals(teacher.network, batch, requested)  # type: ignore[arg-type]

    read = OwnRows(forward, items)  # type: ignore[arg-type]
    for chosen in ([3, 0, 5], [6, 6, 1]):
        batch = {Field.ITEMS: torch.tensor(chosen), Field.INPUT_IDS: torch.zeros(3, 8, dtype=torch.long)}
        answers = read(batch, LOGITS)[Signal.LOGITS]
        for row, index in enumerate(chosen):
            ids = teacher.tokenizer(TEXTS[index]["text"], truncation=True, return_tensors="pt")
            fields = {Field(name): value for name, value in ids.items()}
            alone = teacher.record.head.signals(teacher.network, fields, LOGITS)[Signal.LOGITS]
            torch.testing.assert_close(answers[row], alone[0], rtol=1e-4, atol=1e-5)
    assert calls == [len(TEXTS)], "each example once, whichever batch asks first"
    states = read(batch, LOGITS | {Signal.HIDDEN_STATES})
    assert torch.equal(states[Signal.LOGITS], answers) and len(states[Signal.HIDDEN_STATES][0]) == 3


@pytest.fixture(scope="module")
def taught(
    trained: Trained, tables: dict[str, Path], sources: dict[str, DataSource], tmp_path_factory: pytest.TempPathFactory
) -> Job:
    """The student's job, computed; its teacher is the classifier that all tests share."""
    root = tmp_path_factory.mktemp("taught")
    steps = {step.name: step for step in plan_of(library_of(root, small=TAUGHT), "small", sources).steps}
    folders = {steps["classify"].fingerprint: trained.folder("classify")}
    job = job_of(steps["taught"], folders, tables, root / "taught", Runtime(log_every=1, checkpoint_every=4))
    run(job)
    return job


def test_a_student_of_words_learns_from_a_teacher_of_subwords(taught: Job) -> None:
    losses = [line["train/match_logits"] for line in read_metrics(taught.out / METRICS) if "train/match_logits" in line]
    assert np.mean(losses[-3:]) < np.mean(losses[:3])
    assert "[CLS]" not in open_lines(taught.out, "cpu").tokenizer.get_vocab()


def test_an_interrupted_student_ends_as_if_never_interrupted(taught: Job, tmp_path: Path) -> None:
    job = taught.model_copy(update={"out": tmp_path})
    interrupted(job, 6)
    assert run(job).resumed_from_step == 4
    for file in ("model.safetensors", METRICS):
        assert (job.out / file).read_bytes() == (taught.out / file).read_bytes(), file


def test_a_teacher_that_answers_no_task_or_divides_examples_is_refused(trained: Trained, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="the teacher's head masked_lm encodes no examples"):
        OwnTokens(open_model(trained.folder("general"), "cpu"), tmp_path)
    teacher = open_model(trained.folder("classify"), "cpu")
    own = OwnTokens(teacher, tmp_path)
    items = own.encode(TEXTS)
    items.owners = items.owners // 2
    with pytest.raises(RecipeError, match="7 rows of the student are 7 of the teacher's, which divides long examples"):
        own.encode_items(items)


def test_many_examples_are_read_from_files(trained: Trained, tmp_path: Path) -> None:
    own = OwnTokens(open_model(trained.folder("classify"), "cpu"), tmp_path / "teacher")
    rows: list[Row] = [{"text": f"message {number}"} for number in range(2049)]
    encoded = own.encode_items(own.encode(rows))
    assert (tmp_path / "teacher").is_dir() and len(encoded) == 2049
    chosen = np.array([5, 2048])
    for name, value in own.encode([rows[5], rows[2048]]).collate(np.arange(2)).items():
        assert np.array_equal(encoded.collate(chosen)[name], value)
