"""Analogies of words by static vectors: a is to b as c is to which word?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from pipelines.judging.certainty.resampling import interval
from pipelines.judging.evaluations import Evaluation
from pipelines.judging.evaluations.word_vectors import EmbeddingTable, answers_right, read_analogies
from pipelines.judging.figures import RecordedFigure, quotient
from pipelines.vocabulary import Ability

if TYPE_CHECKING:
    from pipelines.judging.evaluations.context import EvaluationContext
    from pipelines.task_families import TaskFamily

FIGURE = "analogies"


class AnsweredAnalogiesEvaluation(Evaluation, name="answered_analogies"):
    """Share of analogies that the input embeddings of each model answer by 3CosAdd (Mikolov et al. 2013; Levy &
    Goldberg 2014, eq. 3).

    A question with a word that the model's tokenizer encodes as none or several tokens is answered wrong, so that all
    models are compared on the same questions, which are the items of the intervals.
    """

    paper = "arXiv:1301.3781"
    judges: ClassVar[Literal["task models", "language models", "models"]] = "language models"
    incompatible_abilities: ClassVar[Mapping[Ability, str]] = {Ability.COUNTED: "tables of counts and no vectors"}

    file: str
    """Questions: tab-separated lines of relation, a, b, c, d, or the published form with `: relation` lines."""

    @classmethod
    def figures(cls, family: TaskFamily) -> Sequence[RecordedFigure]:
        return [RecordedFigure(FIGURE, cls.name, quotient(1), bounds=(0.0, 1.0))]

    @property
    def reads_files(self) -> tuple[Path, ...]:
        return (Path(self.file),)

    def measure(self, context: EvaluationContext) -> dict[str, Any]:
        """Raises DataError for a file that is missing or malformed."""
        questions = read_analogies(Path(self.file))
        relations = list(dict.fromkeys(relation for relation, *_ in questions))
        stages, headline = [], {}
        for stage, models in context.language_models.items():
            samples = []
            for model in models:
                known, right = answers_right(EmbeddingTable(model.folder), questions)
                samples.append(np.stack([right, np.ones(len(right))], axis=1))
                context.keep(self.name, model, samples[-1])
            accuracy = interval(quotient(1), samples, context.seed)
            mean = np.mean([rows[:, 0] for rows in samples], axis=0)
            of = {one: mean[[relation == one for relation, *_ in questions]] for one in relations}
            stages.append(
                {
                    "stage": stage,
                    "seeds": [model.seed for model in models],
                    "coverage": round(float(known.mean()), 4),
                    "accuracy": accuracy.record(),
                    "relations": {one: round(float(rows.mean()), 4) for one, rows in of.items()},
                }
            )
            headline[f"{FIGURE}/{stage}"] = accuracy.mean
        return {"questions": len(questions), "stages": stages, "headline": headline}
