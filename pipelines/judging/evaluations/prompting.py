"""A language model that answers a task it was not trained for, from a few examples in its prompt."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field as Option
from pydantic import NonNegativeInt, PositiveInt

from pipelines.judging.certainty.resampling import RESAMPLES, interval
from pipelines.judging.evaluations import Evaluation
from pipelines.judging.evaluations.forward_passes import EvaluationSize, ForwardPasses
from pipelines.vocabulary import Signal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipelines.judging.certainty.resampling import Score
    from pipelines.judging.evaluations.stage import EvaluationContext
    from pipelines.task_families import Answer, Row, TaskFamily

CONTENT_FREE = ("N/A", "[MASK]", "")
"""Texts that say nothing about an answer (Zhao et al. 2021, §5)."""

ANSWERED = 8.0
"""Tokens of an example's answer and of the words around it, about."""


class PromptingEvaluation(Evaluation, name="prompting"):
    """Zero-, one- and few-shot answers of language models (Radford et al. 2019; Brown et al. 2020, §2.4).

    A prompt is some training examples with their answers, drawn anew for each test example, and the test example without
    its own. Of the possible answers the one with the highest log-likelihood a token is given.
    """

    paper = "arXiv:2005.14165"
    judges = "language models"
    reads = frozenset({"text_classification", "pair_classification", "multiple_choice"})
    needs_signals = frozenset({Signal.NEXT_LOGITS})

    shots: tuple[NonNegativeInt, ...] = Option((0, 1, 4), min_length=1)
    """Numbers of answered examples in a prompt. The more begin with the fewer."""
    examples: PositiveInt = 200
    """Test examples that are asked, the same of every model: drawn by the seed where the table has more."""
    tokens: PositiveInt | None = None
    """Tokens kept of each text of an example, so that more examples fit; None keeps all."""
    calibrate: bool = False
    """Whether an answer's score is divided by what it gets when the example's texts say nothing: `N/A`, `[MASK]` and the
    empty text, averaged (Zhao et al. 2021, arXiv:2102.09690, §4 and 5)."""

    def tiny(self) -> Self:
        return self.model_copy(update={"examples": min(self.examples, 8)})

    @property
    def longest_row(self) -> int | None:
        return None if self.tokens is None else (max(self.shots) + 1) * self.tokens

    def readings(self, asked: EvaluationSize) -> Sequence[ForwardPasses]:
        rows = min(self.examples, asked.documents) * asked.answers * (1 + len(CONTENT_FREE) * self.calibrate)
        each = ANSWERED + (asked.tokens if self.tokens is None else min(float(self.tokens), asked.tokens))
        lengths = [(shots + 1) * each for shots in self.shots]
        return [ForwardPasses(rows, length, scored=length) for length in lengths]

    def measure(self, evaluated: EvaluationContext) -> dict[str, Any]:
        """The family's metrics by number of shots: mean over seeds, 95 % interval over seeds and examples.

        Raises RecipeError when a stage does not read from left to right, or when a prompt is longer than it can read: with
        the number of shots, the tokens, the limit, and how many shots would fit.
        """
        import numpy as np

        family, train = evaluated.family, evaluated.examples("train")
        labels = family.labels(train)
        random = np.random.default_rng([evaluated.seed, 5])
        rows = [evaluated.rows[index] for index in np.sort(random.permutation(len(evaluated.rows))[: self.examples])]
        gold = [family.gold(row) for row in rows]
        stages, headline = [], {}
        for stage, models in evaluated.language_models.items():
            said = [
                self.answers(model.folder, family, train, rows, evaluated.seed, evaluated.threads, stage)
                for model in models
            ]
            by_shots = []
            for shots in self.shots:
                heard = [family.statistics(gold, answers[shots], labels) for answers in said]
                record: dict[str, Any] = {"shots": shots}
                for metric in family.metrics:
                    estimate = interval(_score(family, metric), heard, evaluated.seed)
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
        """Number of shots → what the model in `folder` answers to each of `rows`, with examples drawn from `train`.

        `stage` names the model in errors; its folder does when it is empty. Raises what `measure` does.
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
        asked = [prompts.question(row) for row in rows]
        if self.calibrate:
            asked += [prompts.saying_nothing(row, text) for row in rows for text in CONTENT_FREE]
        size = len(rows)
        owners = [*range(size), *(place for place in range(size) for _ in CONTENT_FREE)][: len(asked)]
        drawn = [prompts.shots(place, max(self.shots)) for place in range(size)]
        check_prompt_lengths(
            asked, [drawn[owner] for owner in owners], self.shots, opened.network.config, stage or str(folder)
        )
        answers: dict[int, list[Answer]] = {}
        for shots in self.shots:
            behind = [[*prompts.start, *(token for shot in some[:shots] for token in shot)] for some in drawn]
            heard = log_likelihoods(
                opened, [([*behind[owner], *one.text], one.answers) for owner, one in zip(owners, asked, strict=True)]
            )
            if self.calibrate:
                free = len(CONTENT_FREE)
                empty = (heard[size + free * place : size + free * (place + 1)] for place in range(size))
                heard = [calibrated(scores, some) for scores, some in zip(heard[:size], empty, strict=True)]
            answers[shots] = [
                family.gold(one.filled[int(scores.argmax())]) for one, scores in zip(asked, heard, strict=False)
            ]
        return answers


def _score(family: TaskFamily, metric: str) -> Score:
    return lambda statistics: family.scores(statistics)[metric]


def calibrated(scores: NDArray[np.float64], empty: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """`scores` [A] of the answers less what they get where nothing is asked: the log of their mean probability, each of
    `empty` [A] normalised over the answers (Zhao et al. 2021, eq. 1 with W = diag(p)⁻¹ and b = 0)."""
    import numpy as np

    chances = [np.exp(some - some.max()) / np.exp(some - some.max()).sum() for some in empty]
    result: NDArray[np.float64] = scores - np.log(np.mean(chances, axis=0))
    return result
