"""How much of its score a model keeps when its examples are attacked."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, PositiveInt, SerializeAsAny, field_validator

from pipelines.errors import RecipeError
from pipelines.judging.attacks import TEXTS, Attack
from pipelines.judging.certainty.resampling import interval
from pipelines.judging.certainty.statistics import Difference
from pipelines.judging.evaluations import Evaluation
from pipelines.judging.evaluations.forward_passes import EvaluationSize, ForwardPasses

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipelines.judging.certainty.resampling import Score
    from pipelines.judging.evaluations.stage import EvaluationContext
    from pipelines.task_families import Row, TaskFamily

SHOWN = 2
"""Changed examples that the record shows of each attack."""


class RobustnessEvaluation(Evaluation, name="robustness"):
    """Scores on clean and on attacked test examples side by side, and what each attack costs, paired example by example.

    Every model sees the same attacked examples: each is drawn from the stage's seed, the attack and its own place in the
    table, so that neither the other attacks nor the number of examples move it. What is lost is attacked minus clean.
    """

    paper = "arXiv:1711.02173"
    reads = TEXTS

    attacks: tuple[SerializeAsAny[Attack], ...] = Field(min_length=1)
    """What is done to the examples, each by itself."""
    rate: float = Field(0.2, gt=0, le=1)
    """Share of words that an attack changes (of characters, in scripts without spaces)."""
    metric: str | None = None
    """The score that counts; None for the family's first."""
    examples: PositiveInt = 1000
    """Test examples that are asked, the same of every model: drawn by the seed where the table has more."""

    @field_validator("attacks", mode="after")
    @classmethod
    def _apart(cls, attacks: tuple[Attack, ...]) -> tuple[Attack, ...]:
        names = [attack.name for attack in attacks]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"{twice} is asked twice; put the second into an evaluate stage of its own")
        return attacks

    def tiny(self) -> Self:
        return self.model_copy(update={"examples": min(self.examples, 8)})

    def readings(self, asked: EvaluationSize) -> Sequence[ForwardPasses]:
        return [ForwardPasses(min(self.examples, asked.documents) * len(self.attacks), asked.tokens)]

    def unfit(self, family: str | None, language: str | None) -> str | None:
        return next((why for attack in self.attacks if (why := attack.unfit(family, language))), None)

    def measure(self, evaluated: EvaluationContext) -> dict[str, Any]:
        """Raises RecipeError for a metric that the family does not have, or an attack that is not for this dataset."""
        import numpy as np

        family = evaluated.family
        if unfit := self.unfit(family.name, evaluated.language):
            raise RecipeError(f"evaluation {self.name}: {unfit}")
        metric = self.chosen_metric(self.metric, family)
        score = family.scorer(metric)
        random = np.random.default_rng([evaluated.seed, 7])
        chosen = np.sort(random.permutation(len(evaluated.rows))[: self.examples])
        rows = [evaluated.rows[index] for index in chosen]
        attacked = {
            attack.name: [
                self._attacked(attack, row, family, evaluated, int(index))
                for index, row in zip(chosen, rows, strict=True)
            ]
            for attack in self.attacks
        }
        stages, headline = [], {}
        for stage, models in evaluated.answering.items():
            clean = [evaluated.statistics(subject)[chosen] for subject in models]
            record: dict[str, Any] = {
                "stage": stage,
                "seeds": [subject.seed for subject in models],
                "clean": {metric: interval(score, clean, evaluated.seed).record()},
                "attacked": {},
                "loss": {},
            }
            for name, changed in attacked.items():
                right = [family.gold(row) for row in changed]
                heard = [
                    family.statistics(right, evaluated.answers_to(subject, changed), evaluated.labels)
                    for subject in models
                ]
                estimate = interval(score, heard, evaluated.seed)
                record["attacked"][name] = {metric: estimate.record()}
                record["loss"][name] = {metric: _loss(score, clean, heard, evaluated.seed).record()}
                headline[f"robustness/{metric}/{stage}/{name}"] = estimate.mean
            stages.append(record)
        return {
            "metric": metric,
            "metrics": [metric],
            "rate": self.rate,
            "examples": len(rows),
            "attacks": list(attacked),
            "changed": {name: _share_changed(rows, changed, family) for name, changed in attacked.items()},
            "stages": stages,
            "shown": [
                {"attack": name, "index": int(index), "clean": family.text(row), "attacked": family.text(other)}
                for name, changed in attacked.items()
                for index, row, other in _changed(chosen, rows, changed, family)[:SHOWN]
            ],
            "headline": headline,
        }

    def _attacked(self, attack: Attack, row: Row, family: TaskFamily, evaluated: EvaluationContext, index: int) -> Row:
        import numpy as np

        random = np.random.default_rng([evaluated.seed, zlib.crc32(attack.name.encode()), index])
        return attack.example(row, family, self.rate, random, evaluated.language)


def _loss(
    score: Score, clean: Sequence[NDArray[np.float64]], attacked: Sequence[NDArray[np.float64]], seed: int
) -> Difference:
    """Attacked minus clean: the same models on the same examples, so that seeds are paired as examples are."""
    import numpy as np

    width = clean[0].shape[1]
    sides = [np.hstack(both) for both in zip(clean, attacked, strict=True)]
    # a correlation can lose two
    lost = interval(lambda rows: score(rows[:, width:]) - score(rows[:, :width]), sides, seed, reach=2.0, least=-2.0)
    return Difference(lost.mean, lost.low, lost.high)


def _changed(
    chosen: NDArray[np.int64], rows: Sequence[Row], others: Sequence[Row], family: TaskFamily
) -> list[tuple[int, Row, Row]]:
    return [
        (index, row, other)
        for index, row, other in zip(chosen.tolist(), rows, others, strict=True)
        if family.text(row) != family.text(other)
    ]


def _share_changed(rows: Sequence[Row], others: Sequence[Row], family: TaskFamily) -> float:
    same = sum(family.text(row) == family.text(other) for row, other in zip(rows, others, strict=True))
    return 1 - same / len(rows)
