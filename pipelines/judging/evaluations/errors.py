"""The answers that were most wrong: what a person reads first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import PositiveInt

from pipelines.judging.evaluations import Evaluation

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipelines.judging.evaluations.stage import EvaluationContext
    from pipelines.judging.subjects import Subject
    from pipelines.task_families import Answer

CHARACTERS = 600
"""Of a text, this much is kept."""


class ErrorsEvaluation(Evaluation, name="errors"):
    """The wrong answers of each stage's first seed: the most confident first, or, where answers have no probability, the worst.

    How bad an answer is, is the family's first score over that example alone. Those that are alike stand in the order of
    the table, so that the same models show the same errors.
    """

    reads = frozenset(
        {
            "text_classification",
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

    shown: PositiveInt = 10
    """Errors shown of each stage."""

    def measure(self, evaluated: EvaluationContext) -> dict[str, Any]:
        import numpy as np

        stages = []
        for stage, models in evaluated.answering.items():
            subject = models[0]
            answers = evaluated.answers(subject)
            scores = self._scores(evaluated, subject)
            # a sentence without entities scores nothing, and is right when none is given
            same = [given == right for given, right in zip(answers, evaluated.gold, strict=True)]
            wrong = np.flatnonzero((scores < 1) & ~np.asarray(same))
            weights = self._confidence(evaluated, subject)
            order = wrong[np.argsort(scores[wrong] if weights is None else -weights[wrong], kind="stable")]
            stages.append(
                {
                    "stage": stage,
                    "seed": subject.seed,
                    "wrong": len(wrong),
                    "errors": [
                        {
                            "index": int(index),
                            "text": _cut(evaluated.family.text(evaluated.rows[index])),
                            "right": _written(evaluated.gold[index]),
                            "given": _written(answers[index]),
                            "score": float(scores[index]),
                            "confidence": None if weights is None else float(weights[index]),
                        }
                        for index in order[: self.shown]
                    ],
                }
            )
        return {"errors": self.shown, "examples": len(evaluated.rows), "stages": stages}

    @staticmethod
    def _scores(evaluated: EvaluationContext, subject: Subject) -> NDArray[np.float64]:
        """[N]: the family's score of each example, 1 where it is answered rightly."""
        import numpy as np

        family, statistics = evaluated.family, evaluated.statistics(subject)
        metric = family.metrics[0]
        return np.asarray([family.scores(statistics[row : row + 1])[metric] for row in range(len(statistics))])

    @staticmethod
    def _confidence(evaluated: EvaluationContext, subject: Subject) -> NDArray[np.float64] | None:
        import numpy as np

        if not evaluated.has_class_probabilities(subject):
            return None
        highest: NDArray[np.float64] = evaluated.probabilities(subject).max(axis=1).astype(np.float64).round(6)
        return highest


def _written(answer: Answer) -> str:
    if isinstance(answer, (list, tuple)):
        return " ".join(map(str, answer)) if all(isinstance(one, str) for one in answer) else str(answer)
    return str(answer)


def _cut(text: str) -> str:
    return text if len(text) <= CHARACTERS else f"{text[: CHARACTERS - 1]}…"
