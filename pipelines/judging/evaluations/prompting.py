"""In-context learning: a language model answers a task that it was not trained for, from a few examples in its
prompt."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field as Option
from pydantic import NonNegativeInt

from pipelines.judging.certainty.resampling import RESAMPLES, interval
from pipelines.judging.evaluations import Evaluation
from pipelines.judging.evaluations.forward_passes import EvaluationSize, ForwardPasses
from pipelines.judging.figures import RecordedFigure
from pipelines.vocabulary import Signal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipelines.judging.certainty.resampling import Score
    from pipelines.judging.evaluations.context import EvaluationContext
    from pipelines.task_families import Answer, Row, TaskFamily

CONTENT_FREE = ("N/A", "[MASK]", "")
"""Content-free texts (Zhao et al. 2021, §5)."""

ANSWER_TOKENS = 8.0
"""Tokens of an example's answer and of the template around it, approximately."""


class PromptingEvaluation(Evaluation, name="prompting"):
    """Zero-, one- and few-shot answers of language models (Radford et al. 2019; Brown et al. 2020, §2.4).

    A prompt has some training examples with their answers, drawn independently for each test example, and the test
    example without its answer. The predicted answer is the one with the highest log-likelihood per token.
    """

    paper = "arXiv:2005.14165"
    judges = "language models"
    reads = frozenset({"text_classification", "pair_classification", "multiple_choice"})
    needs_signals = frozenset({Signal.NEXT_LOGITS})

    shots: tuple[NonNegativeInt, ...] = Option((0, 1, 4), min_length=1)
    """Numbers of answered examples in a prompt. Larger prompts begin with the examples of smaller ones."""
    examples: int = Option(200, ge=1, le=10_000_000)
    """Test examples that every model answers, the same for all: a random sample if the table has more."""
    tokens: int | None = Option(None, ge=1, le=1_000_000)
    """Tokens kept of each text of an example, so that more examples fit; None keeps all."""
    calibrate: bool = False
    """Whether an answer's probability is divided by its probability for content-free texts (`N/A`, `[MASK]` and the
    empty text, averaged; Zhao et al. 2021, arXiv:2102.09690, §4 and 5)."""

    @classmethod
    def figures(cls, family: TaskFamily) -> Sequence[RecordedFigure]:
        """Each metric with the smallest and with the largest number of shots, and how much these add."""
        return [
            RecordedFigure(f"{metric}_{suffix}", SAMPLE, partial(score, family, metric), bounds=(-2.0, 2.0))
            for metric in family.metrics
            for suffix, score in SHOT_FIGURES.items()
        ]

    def tiny(self) -> Self:
        return self.model_copy(update={"examples": min(self.examples, 8)})

    @property
    def longest_row(self) -> int | None:
        return None if self.tokens is None else (max(self.shots) + 1) * self.tokens

    def forward_passes(self, size: EvaluationSize) -> Sequence[ForwardPasses]:
        rows = min(self.examples, size.documents) * size.answers * (1 + len(CONTENT_FREE) * self.calibrate)
        each = ANSWER_TOKENS + (size.tokens if self.tokens is None else min(float(self.tokens), size.tokens))
        lengths = [(shots + 1) * each for shots in self.shots]
        return [ForwardPasses(rows, length, scored=length) for length in lengths]

    def measure(self, context: EvaluationContext) -> dict[str, Any]:
        """The family's metrics by number of shots: mean over seeds, 95 % interval over seeds and examples.

        Raises RecipeError when a stage is not autoregressive, or when a prompt exceeds its context length; the message
        has the number of shots, the tokens, the limit, and how many shots would fit.
        """
        import numpy as np

        family, train = context.family, context.examples("train")
        labels = family.labels(train)
        random = np.random.default_rng([context.seed, 5])
        rows = [context.rows[index] for index in np.sort(random.permutation(len(context.rows))[: self.examples])]
        gold = [family.gold(row) for row in rows]
        stages, headline = [], {}
        for stage, models in context.language_models.items():
            answers_by_shots = [
                self.answers(model.folder, family, train, rows, context.seed, context.threads, stage)
                for model in models
            ]
            ends = (min(self.shots), max(self.shots))
            for model, answers in zip(models, answers_by_shots, strict=True):
                each = [family.statistics(gold, answers[shots], labels) for shots in ends]
                context.keep(SAMPLE, model, np.stack(each, axis=1))
            by_shots = []
            for shots in self.shots:
                statistics = [family.statistics(gold, answers[shots], labels) for answers in answers_by_shots]
                record: dict[str, Any] = {"shots": shots}
                for metric in family.metrics:
                    estimate = interval(_score(family, metric), statistics, context.seed)
                    record[metric] = estimate.record()
                    headline[f"prompting/{metric}/{stage}/{shots}"] = estimate.mean
                by_shots.append(record)
            stages.append({"stage": stage, "seeds": [model.seed for model in models], "by_shots": by_shots})
        return {
            "family": family.name,
            "metrics": list(family.metrics),
            "examples": len(rows),
            "resamples": RESAMPLES,
            "calibrated": self.calibrate,
            "stages": stages,
            "headline": headline,
        }

    def answers(
        self,
        folder: Path,
        family: TaskFamily,
        train: Sequence[Row],
        rows: Sequence[Row],
        seed: int,
        threads: int = 1,
        stage: str = "",
    ) -> dict[int, list[Answer]]:
        """Number of shots → the model's answers to `rows`, with examples drawn from `train`.

        `stage` names the model in errors; if empty, its folder does. Raises RecipeError as `measure` does.
        """
        import torch

        from pipelines.judging.evaluations.prompts import (
            Prompts,
            check_prompt_lengths,
            log_likelihoods,
            open_language_model,
        )

        torch.set_num_threads(threads)
        opened = open_language_model(folder)
        prompts = Prompts(opened.tokenizer, family, train, self.tokens, seed)
        prompted = [prompts.prompted_example(row) for row in rows]
        if self.calibrate:
            prompted += [prompts.content_free(row, text) for row in rows for text in CONTENT_FREE]
        size = len(rows)
        owners = [*range(size), *(index for index in range(size) for _ in CONTENT_FREE)][: len(prompted)]
        drawn = [prompts.shots(index, max(self.shots)) for index in range(size)]
        check_prompt_lengths(
            prompted, [drawn[owner] for owner in owners], self.shots, opened.network.config, stage or str(folder)
        )
        answers: dict[int, list[Answer]] = {}
        for shots in self.shots:
            prefixes = [[*prompts.start, *(token for shot in own[:shots] for token in shot)] for own in drawn]
            scores = log_likelihoods(
                opened,
                [([*prefixes[owner], *one.text], one.answers) for owner, one in zip(owners, prompted, strict=True)],
            )
            if self.calibrate:
                free = len(CONTENT_FREE)
                empty = (scores[size + free * index : size + free * (index + 1)] for index in range(size))
                scores = [calibrated(own, baseline) for own, baseline in zip(scores[:size], empty, strict=True)]
            answers[shots] = [
                family.gold(one.filled[int(own.argmax())]) for one, own in zip(prompted, scores, strict=False)
            ]
        return answers


def _fewest(family: TaskFamily, metric: str, rows: NDArray[np.float64]) -> float:
    return family.scores(rows[:, 0])[metric]


def _most(family: TaskFamily, metric: str, rows: NDArray[np.float64]) -> float:
    return family.scores(rows[:, 1])[metric]


def _gain(family: TaskFamily, metric: str, rows: NDArray[np.float64]) -> float:
    return _most(family, metric, rows) - _fewest(family, metric, rows)


SAMPLE = "prompted"
"""Sample of a model [N, 2, K]: the statistics of each example's answer with the fewest and with the most shots."""
SHOT_FIGURES = {"with_fewest_shots": _fewest, "with_most_shots": _most, "gained_by_shots": _gain}
"""End of a figure's name → its score of that sample."""


def _score(family: TaskFamily, metric: str) -> Score:
    return lambda statistics: family.scores(statistics)[metric]


def calibrated(scores: NDArray[np.float64], empty: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Log-likelihoods of the answers, `scores` [A], minus the log of their mean probability for content-free texts.

    Each of `empty` [A] is normalised over the answers (Zhao et al. 2021, eq. 1 with W = diag(p)⁻¹ and b = 0).
    """
    import numpy as np

    probabilities = [np.exp(one - one.max()) / np.exp(one - one.max()).sum() for one in empty]
    result: NDArray[np.float64] = scores - np.log(np.mean(probabilities, axis=0))
    return result
