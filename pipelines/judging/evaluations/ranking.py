"""Ranking: where the right choice of a question is among many candidates."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field

from pipelines.errors import DataError
from pipelines.judging.certainty.resampling import RESAMPLES, interval
from pipelines.judging.evaluations import Evaluation
from pipelines.judging.evaluations.forward_passes import EvaluationSize, ForwardPasses
from pipelines.judging.figures import RecordedFigure
from pipelines.vocabulary import Signal

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from pipelines.judging.evaluations.context import EvaluationContext
    from pipelines.task_families import Row, TaskFamily

CUTS = (1, 3)
FEWEST = 4
"""Least number of candidates: of fewer, the first three would be all."""
FIGURES = ("reciprocal_rank", "recall_at_1", "recall_at_3")
"""What is recorded of each model, in the order of the columns of its sample."""
BATCH = 64
"""Rows of candidates that are read together, approximately."""


class RankingEvaluation(Evaluation, name="ranking"):
    """Mean reciprocal rank of the right choice, and the share of questions with it among the first 1 and 3 of n
    candidates: recall at k, 1-to-n and 3-to-n accuracy (Henderson et al. 2019, arXiv:1906.01543; Wu et al. 2020).

    The candidates of a question are its own choices, and right choices of other test questions, drawn by the seed: the
    same for all models. A candidate with the score of the right one ranks before it, so that a model that cannot tell
    them apart gains nothing.
    """

    paper = "arXiv:2004.06871"
    reads = frozenset({"multiple_choice"})
    needs_signals = frozenset({Signal.LOGITS})

    candidates: int = Field(20, ge=FEWEST, le=10_000)
    """Number of candidates of each question, the right one among them; 100 in the paper. A question with more choices
    has the right one and the first others."""

    @classmethod
    def figures(cls, family: TaskFamily) -> Sequence[RecordedFigure]:
        return [
            RecordedFigure(name, cls.name, partial(_mean_of, column), bounds=(0.0, 1.0))
            for column, name in enumerate(FIGURES)
        ]

    def tiny(self) -> Self:
        return self.model_copy(update={"candidates": FEWEST})

    def forward_passes(self, size: EvaluationSize) -> Sequence[ForwardPasses]:
        return [ForwardPasses(size.documents * self.candidates, size.tokens)]

    def measure(self, context: EvaluationContext) -> dict[str, Any]:
        """Raises DataError where the test table has too few different answers."""
        questions = with_candidates(list(context.rows), self.candidates, context.seed)
        stages, headline = [], {}
        for stage, models in context.task_models.items():
            samples = [sample_of(ranks(subject.folder, questions, context.threads)) for subject in models]
            for subject, sample in zip(models, samples, strict=True):
                context.keep(self.name, subject, sample)
            record: dict[str, Any] = {"stage": stage, "seeds": [subject.seed for subject in models]}
            for column, name in enumerate(FIGURES):
                estimate = interval(partial(_mean_of, column), samples, context.seed)
                record[name] = estimate.record()
                headline[f"{name}/{stage}"] = estimate.mean
            stages.append(record)
        return {
            "candidates": self.candidates,
            "questions": len(questions),
            "resamples": RESAMPLES,
            "ranked": stages,
            "chance": chance(self.candidates),
            "headline": headline,
        }


def with_candidates(rows: Sequence[Row], number: int, seed: int) -> list[dict[str, Any]]:
    """`rows` with `number` choices each: their own, and right choices of other rows, drawn by `seed`.

    Raises DataError where the rows have too few different right choices.
    """
    import numpy as np

    random = np.random.default_rng([seed, 11])
    answers = list(dict.fromkeys(row["choices"][row["answer"]] for row in rows))
    numbers = {answer: index for index, answer in enumerate(answers)}
    own = [_right_first(row)[:number] for row in rows]
    # lists of all others would take memory by the square of the table
    known = [sorted(numbers[choice] for choice in choices if choice in numbers) for choices in own]
    most = min(len(choices) + len(answers) - len(gone) for choices, gone in zip(own, known, strict=True))
    if most < number:
        raise DataError(
            f"ranking: {number} candidates are more than the test table has for every question, whose {len(answers)} "
            f"different right choices are the only further ones; set candidates to {most} or fewer"
        )
    questions = []
    for row, choices, gone in zip(rows, own, known, strict=True):
        drawn = random.choice(len(answers) - len(gone), size=number - len(choices), replace=False)
        for index in gone:  # from numbers among the others to those among all answers
            drawn += drawn >= index
        questions.append({**row, "choices": [*choices, *(answers[index] for index in drawn)], "answer": 0})
    return questions


def _right_first(row: Row) -> list[str]:
    right = row["choices"][row["answer"]]
    return [right, *(choice for choice in dict.fromkeys(row["choices"]) if choice != right)]


def ranks(folder: Path, questions: Sequence[Row], threads: int) -> NDArray[np.int64]:
    """int64 [N]: the rank, from 1, that the model in `folder` gives the right choice of each question."""
    import numpy as np
    import torch

    from pipelines.models.answering import BLOCK, outputs_of
    from pipelines.models.features import encode_examples
    from pipelines.models.opening import open_model
    from pipelines.models.reading import complete_batches

    torch.set_num_threads(threads)
    opened = open_model(folder, "cpu")
    record, length = opened.record, int(opened.tokenizer.model_max_length)
    assert record.task is not None  # a task model
    result = np.zeros(len(questions), dtype=np.int64)
    candidates = len(questions[0]["choices"])
    for begin in range(0, len(questions), together := max(1, BLOCK // candidates)):
        block = questions[begin : begin + together]
        right = np.asarray([question["answer"] for question in block])
        encoded = encode_examples(
            record.head, block, record.task, opened.tokenizer, length, opened.features, answers=False
        )
        complete_batches(encoded, record, opened.tokenizer, length)
        with torch.inference_mode():
            for chosen, _, signals in outputs_of(
                opened.network, record.head, encoded, RankingEvaluation.needs_signals, max(1, BATCH // candidates)
            ):
                scores = signals[Signal.LOGITS].float().numpy()
                own = scores[np.arange(len(chosen)), right[chosen]]
                # also before what is no number
                result[begin + chosen] = (~(scores < own[:, None])).sum(1)
    return result


def sample_of(rank: NDArray[np.int64]) -> NDArray[np.float64]:
    """float64 [N, 3]: reciprocal ranks, and whether they are among the first of `CUTS`, of `rank` [N]."""
    import numpy as np

    return np.stack([1 / rank, *(rank <= cut for cut in CUTS)], axis=1).astype(np.float64)


def chance(candidates: int) -> dict[str, float]:
    """The figures of a random order: H_n / n and k / n."""
    harmonic = sum(1 / rank for rank in range(1, candidates + 1))
    return dict(zip(FIGURES, [harmonic / candidates, *(cut / candidates for cut in CUTS)], strict=True))


def _mean_of(column: int, rows: NDArray[np.float64]) -> float:
    return float(rows[:, column].mean())
