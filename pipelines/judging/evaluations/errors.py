"""The worst wrong answers of each stage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field

from pipelines.judging.evaluations import Evaluation

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipelines.judging.evaluations.context import EvaluationContext
    from pipelines.judging.subjects import Subject
    from pipelines.task_families import Answer

CHARACTERS = 600
"""Characters of a text that are shown."""


class ErrorsEvaluation(Evaluation, name="errors"):
    """Wrong answers of each stage's first seed: most confident first, or lowest score first if answers have no
    probability.

    The score of an answer is the family's first metric over that example alone. Ties are in table order, so that the
    same models give the same list.
    """

    reads = frozenset(
        {
            "text_classification",
            "label_sets",
            "pair_classification",
            "span_pair_classification",
            "multiple_choice",
            "minimal_pairs",
            "span_extraction",
            "tagging",
            "layout_tagging",
            "text_generation",
            "table_questions",
            "word_analogies",
        }
    )

    shown: int = Field(10, ge=1, le=1000)
    """Errors shown per stage."""

    def measure(self, context: EvaluationContext) -> dict[str, Any]:
        import numpy as np

        stages = []
        for stage, models in context.task_models.items():
            subject = models[0]
            answers = context.answers(subject)
            scores = self._scores(context, subject)
            # a sentence without entities scores 0, and is correct if none is predicted
            same = [given == right for given, right in zip(answers, context.gold, strict=True)]
            wrong = np.flatnonzero((scores < 1) & ~np.asarray(same))
            weights = self._confidence(context, subject)
            order = wrong[np.argsort(scores[wrong] if weights is None else -weights[wrong], kind="stable")]
            stages.append(
                {
                    "stage": stage,
                    "seed": subject.seed,
                    "wrong": len(wrong),
                    "errors": [
                        {
                            "index": int(index),
                            "text": _truncate(context.family.text(context.rows[index])),
                            "right": _written(context.gold[index]),
                            "given": _written(answers[index]),
                            "score": float(scores[index]),
                            "confidence": None if weights is None else float(weights[index]),
                        }
                        for index in order[: self.shown]
                    ],
                }
            )
        return {"errors": self.shown, "examples": len(context.rows), "stages": stages}

    @staticmethod
    def _scores(context: EvaluationContext, subject: Subject) -> NDArray[np.float64]:
        """Score [N] of each example, 1 if it is answered correctly."""
        import numpy as np

        family, statistics = context.family, context.statistics(subject)
        metric = family.metrics[0]
        return np.asarray([family.scores(statistics[row : row + 1])[metric] for row in range(len(statistics))])

    @staticmethod
    def _confidence(context: EvaluationContext, subject: Subject) -> NDArray[np.float64] | None:
        import numpy as np

        if not context.has_class_probabilities(subject):
            return None
        highest: NDArray[np.float64] = context.probabilities(subject).max(axis=1).astype(np.float64).round(6)
        return highest


def _written(answer: Answer) -> str:
    if isinstance(answer, dict):
        return ", ".join(f"{label} {probability:.2f}" for label, probability in answer.items()) or "none"
    if isinstance(answer, (list, tuple)):
        return " ".join(map(str, answer)) if all(isinstance(one, str) for one in answer) else str(answer)
    return str(answer)


def _truncate(text: str) -> str:
    return text if len(text) <= CHARACTERS else f"{text[: CHARACTERS - 1]}…"
