"""Robustness: how much of its score a model keeps when the examples are attacked."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, SerializeAsAny, field_validator

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
    from pipelines.judging.evaluations.context import EvaluationContext
    from pipelines.task_families import Row, TaskFamily

SHOWN = 2
"""Changed examples that the record shows per attack."""


class RobustnessEvaluation(Evaluation, name="robustness"):
    """Scores on clean and on attacked test examples, and the loss under each attack, paired by example.

    All models read the same attacked examples: the random numbers of each depend on the stage's seed, the attack and
    its index in the table only, not on the other attacks or the number of examples. The loss is attacked minus clean.
    """

    paper = "arXiv:1711.02173"
    reads = TEXTS

    attacks: tuple[SerializeAsAny[Attack], ...] = Field(min_length=1)
    """Attacks on the examples, applied one at a time."""
    rate: float = Field(0.2, gt=0, le=1)
    """Share of words that an attack changes (of characters, in scripts without spaces)."""
    metric: str | None = None
    """Metric to report; None for the family's first."""
    examples: int = Field(1000, ge=1, le=10_000_000)
    """Test examples that every model answers, the same for all: a random sample if the table has more."""

    @field_validator("attacks", mode="after")
    @classmethod
    def _unique(cls, attacks: tuple[Attack, ...]) -> tuple[Attack, ...]:
        names = [attack.name for attack in attacks]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"{twice} is given twice; put the second into an evaluate stage of its own")
        return attacks

    def tiny(self) -> Self:
        return self.model_copy(update={"examples": min(self.examples, 8)})

    def forward_passes(self, size: EvaluationSize) -> Sequence[ForwardPasses]:
        return [ForwardPasses(min(self.examples, size.documents) * len(self.attacks), size.tokens)]

    def unfit(self, family: str | None, language: str | None) -> str | None:
        for attack in self.attacks:
            if not attack.judges:
                fits = sorted(name for name, one in Attack.members.items() if getattr(one, "judges", False))
                return (
                    f"{attack.name} reads the model of another stage, which only training examples can be changed by; "
                    f"attacks that fit: {', '.join(fits)}"
                )
            if (why := attack.unfit(family, language)) is not None:
                return why
        return None

    def measure(self, context: EvaluationContext) -> dict[str, Any]:
        """Raises RecipeError for a metric that the family does not have, or an attack that does not suit this
        dataset."""
        import numpy as np

        family = context.family
        if unfit := self.unfit(family.name, context.language):
            raise RecipeError(f"evaluation {self.name}: {unfit}")
        metric = self.chosen_metric(self.metric, family)
        score = family.scorer(metric)
        random = np.random.default_rng([context.seed, 7])
        chosen = np.sort(random.permutation(len(context.rows))[: self.examples])
        rows = [context.rows[index] for index in chosen]
        attacked = {
            attack.name: [
                self._attacked(attack, row, family, context, int(index))
                for index, row in zip(chosen, rows, strict=True)
            ]
            for attack in self.attacks
        }
        stages, headline = [], {}
        for stage, models in context.task_models.items():
            clean = [context.statistics(subject)[chosen] for subject in models]
            record: dict[str, Any] = {
                "stage": stage,
                "seeds": [subject.seed for subject in models],
                "clean": {metric: interval(score, clean, context.seed).record()},
                "attacked": {},
                "loss": {},
            }
            for name, changed in attacked.items():
                right = [family.gold(row) for row in changed]
                statistics = [
                    family.statistics(right, context.answers_to(subject, changed), context.labels) for subject in models
                ]
                estimate = interval(score, statistics, context.seed)
                record["attacked"][name] = {metric: estimate.record()}
                record["loss"][name] = {metric: _loss(score, clean, statistics, context.seed).record()}
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

    def _attacked(self, attack: Attack, row: Row, family: TaskFamily, context: EvaluationContext, index: int) -> Row:
        import numpy as np

        random = np.random.default_rng([context.seed, zlib.crc32(attack.name.encode()), index])
        return attack.example(row, family, self.rate, random, context.language)


def _loss(
    score: Score, clean: Sequence[NDArray[np.float64]], attacked: Sequence[NDArray[np.float64]], seed: int
) -> Difference:
    """Attacked minus clean for the same models on the same examples: paired by seed and by example."""
    import numpy as np

    width = clean[0].shape[1]
    sides = [np.hstack(both) for both in zip(clean, attacked, strict=True)]
    # a correlation lies between -1 and 1, so its loss can be 2
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
