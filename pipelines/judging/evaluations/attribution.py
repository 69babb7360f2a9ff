"""Attribution: which words an answer depends on, and what it is worth without them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field

from pipelines.errors import DataError, RecipeError
from pipelines.judging.certainty.resampling import interval
from pipelines.judging.evaluations import Evaluation
from pipelines.judging.evaluations.forward_passes import EvaluationSize, ForwardPasses
from pipelines.judging.evaluations.word_removal import without_words, word_spans, words_of_tokens
from pipelines.judging.figures import RecordedFigure
from pipelines.vocabulary import Signal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from transformers import PreTrainedModel

    from pipelines.judging.certainty.resampling import Score
    from pipelines.judging.evaluations.context import EvaluationContext
    from pipelines.judging.subjects import Subject
    from pipelines.serving.answering.inference import Predictor
    from pipelines.task_families import TaskFamily

SAMPLE = "attribution"
WHOLE, GRADIENTS, OCCLUSION, RANDOM = range(4)
"""Columns of the sample: probability of the answer to the whole text, and without the words of each choice."""
DIGITS = 4
SHOWN = 5
"""Texts of which the record shows the words that were removed, of each stage's first model."""


@dataclass(frozen=True)
class ReadText:
    """A test text as one model reads it."""

    text: str
    spans: list[tuple[int, int]]
    """Its words."""
    ids: list[int]
    words: list[int]
    """Word of each token; −1 for special tokens."""
    frame: list[bool]
    """Whether each token is a special one."""

    @property
    def known(self) -> list[int]:
        """The words that the model reads any of."""
        return sorted({word for word in self.words if word >= 0})

    def without(self, removed: Sequence[int]) -> str:
        return without_words(self.text, self.spans, removed)


class AttributionEvaluation(Evaluation, name="attribution"):
    """How far the probability of an answer falls without its most important words, beyond that without random words.

    Important are, once, the words with the largest integrated gradients (Sundararajan et al. 2017), of the path from a
    row without word embeddings, and once those without which, each alone, the answer loses most (occlusion; Li et al.
    2016, arXiv:1612.08220). The fall is the comprehensiveness of DeYoung et al. 2020 (arXiv:1911.03429, §4), of a share
    of the words; as many random words of the same text are the control. The answer is the model's own, right or wrong.
    """

    paper = "arXiv:1703.01365"
    reads = frozenset({"text_classification"})
    needs_signals = frozenset({Signal.LOGITS})

    share: float = Field(0.2, gt=0, lt=1)
    """Share of a text's words that is removed, at least one word, and never all."""
    steps: int = Field(20, ge=1, le=1000)
    """Points of the path at which gradients are computed."""
    draws: int = Field(3, ge=1, le=1000)
    """Random choices of words, of which the probabilities are averaged."""
    texts: int = Field(200, ge=1, le=10_000_000)
    """Test texts of two words or more that every model reads, the same for all: a random sample if there are more."""

    @classmethod
    def figures(cls, family: TaskFamily) -> Sequence[RecordedFigure]:
        return (
            RecordedFigure("fall_without_evidence", SAMPLE, beyond_random(GRADIENTS), bounds=(-1.0, 1.0)),
            RecordedFigure("fall_without_occluded_words", SAMPLE, beyond_random(OCCLUSION), bounds=(-1.0, 1.0)),
        )

    def tiny(self) -> Self:
        return self.model_copy(update={"texts": min(self.texts, 4), "steps": min(self.steps, 4)})

    def forward_passes(self, size: EvaluationSize) -> Sequence[ForwardPasses]:
        # a gradient costs two more passes; of occlusion, a text is read once for each of its words
        passes = 3 * self.steps + size.tokens + self.draws + 2
        return [ForwardPasses(min(self.texts, size.documents) * passes, size.tokens)]

    def measure(self, context: EvaluationContext) -> dict[str, Any]:
        """Raises DataError for a table without texts of two words, RecipeError for a model without gradients."""
        import numpy as np

        several = [
            index for index, text in enumerate(context.test.texts) if len(word_spans(text, context.language)) > 1
        ]
        if not several:
            raise DataError(
                "evaluation attribution: no test text has two words, so that none is left without its most important "
                "one; leave the evaluation out"
            )
        random = np.random.default_rng([context.seed, 11])
        chosen = sorted(several[index] for index in random.permutation(len(several))[: self.texts])
        stages, headline = [], {}
        for stage, models in context.task_models.items():
            record: dict[str, Any] = {"stage": stage, "seeds": [subject.seed for subject in models]}
            of_models = [self._measured(context, subject, chosen) for subject in models]
            samples = [sample for sample, _, _ in of_models]
            for subject, sample in zip(models, samples, strict=True):
                context.keep(SAMPLE, subject, sample)
            for figure in self.figures(context.family):
                estimate = interval(figure.score, samples, context.seed, least=-1.0)
                record[figure.name] = estimate.record()
                headline[f"{figure.name}/{stage}"] = estimate.mean
            means = np.mean(samples, axis=(0, 1))
            record["probability"] = {
                name: round(float(means[column]), DIGITS)
                for name, column in (("whole", WHOLE), ("gradients", GRADIENTS), ("occlusion", OCCLUSION),
                                     ("random", RANDOM))
            }  # fmt: skip
            record["path_error"] = round(float(np.mean([error for _, error, _ in of_models])), 6)
            record["shown"] = of_models[0][2]
            stages.append(record)
        return {"share": self.share, "steps": self.steps, "examples": len(chosen), "stages": stages,
                "headline": headline}  # fmt: skip

    def _measured(
        self, context: EvaluationContext, subject: Subject, chosen: Sequence[int]
    ) -> tuple[NDArray[np.float64], float, list[dict[str, Any]]]:
        """The sample [N, 4] of a model, the mean error of the sums of its gradients, and the first texts."""
        import numpy as np

        name = f"{subject.stage}@{subject.seed}"
        network = _network(subject, name)
        predictor = context.predictor(subject)
        texts = self._read(subject, [context.test.texts[index] for index in chosen], context.language)
        probabilities = predictor.predict([one.text for one in texts])
        answers = probabilities.argmax(axis=1)
        rows: NDArray[np.float64] = np.zeros((len(texts), 4))
        rows[:, WHOLE] = probabilities.max(axis=1)
        removed: list[list[list[int]]] = []
        errors, shown = [], []
        for number, (index, one) in enumerate(zip(chosen, texts, strict=True)):
            answer, known = int(answers[number]), one.known
            count = min(max(1, round(self.share * len(known))), len(one.spans) - 1)
            by_gradients, error = self._gradients(network, one, answer, name)
            by_occlusion = rows[number, WHOLE] - _of_answers(
                predictor, [one.without([word]) for word in known], [answer] * len(known)
            )
            draw = np.random.default_rng([context.seed, 12, index])
            random = [draw.permutation(known)[:count].tolist() for _ in range(self.draws)]
            evidence = [_largest(values, known, count) for values in (by_gradients, by_occlusion)]
            removed.append([*evidence, *random])
            errors.append(error)
            if number < SHOWN:
                words = [[one.text[slice(*one.spans[word])].strip() for word in chosen] for chosen in evidence]
                shown.append({"text": one.text, "answer": predictor.labels[answer], "gradients": words[0],
                              "occlusion": words[1]})  # fmt: skip
        every = [one.without(words) for one, choices in zip(texts, removed, strict=True) for words in choices]
        left = _of_answers(predictor, every, np.repeat(answers, self.draws + 2).tolist()).reshape(len(texts), -1)
        rows[:, GRADIENTS], rows[:, OCCLUSION], rows[:, RANDOM] = left[:, 0], left[:, 1], left[:, 2:].mean(axis=1)
        return rows, float(np.mean(errors)), shown

    def _read(self, subject: Subject, texts: Sequence[str], language: str) -> list[ReadText]:
        """`texts` as a model reads them."""
        from pipelines.models.opening import open_tokenizer
        from pipelines.networks.text_encoder import TextEncoder

        length, tokenizer = TextEncoder(subject.folder).length, open_tokenizer(subject.folder).backend_tokenizer
        tokenizer.no_padding()
        tokenizer.enable_truncation(length)
        result = []
        for text, encoding in zip(texts, tokenizer.encode_batch(list(texts)), strict=True):
            spans = word_spans(text, language)
            frame = [bool(special) for special in encoding.special_tokens_mask]
            words = words_of_tokens(encoding.offsets, spans)
            of_text = [-1 if special else word for special, word in zip(frame, words, strict=True)]
            result.append(ReadText(text, spans, list(encoding.ids), of_text, frame))
        return result

    def _gradients(
        self, network: PreTrainedModel, one: ReadText, answer: int, name: str
    ) -> tuple[NDArray[np.float64], float]:
        """Integrated gradients of each of the text's known words, and the error of their sum."""
        import numpy as np
        import torch

        from pipelines.judging.evaluations.path_gradients import integrated_gradients

        attributed = integrated_gradients(
            network, torch.tensor(one.ids), torch.tensor(one.frame), answer, self.steps, name
        )
        values = np.zeros(len(one.spans))
        for word, value in zip(one.words, attributed.tokens.tolist(), strict=True):
            if word >= 0:
                values[word] += value
        return values[one.known], attributed.error


def beyond_random(column: int) -> Score:
    """Score of rows [n, 4]: how much less probable the answer is without the words of `column` than without random
    ones."""
    return lambda rows: float((rows[:, RANDOM] - rows[:, column]).mean())


def _of_answers(predictor: Predictor, texts: list[str], answers: Sequence[int]) -> NDArray[np.float64]:
    """float64 [N]: the probability of each of `answers` to its text."""
    import numpy as np

    columns = np.asarray(answers, dtype=np.int64)
    return predictor.predict(texts)[np.arange(len(texts)), columns].astype(np.float64)


def _largest(values: NDArray[np.float64], words: Sequence[int], count: int) -> list[int]:
    """The `count` words with the largest values, the first of equals."""
    import numpy as np

    return [words[index] for index in np.argsort(-values, kind="stable")[:count]]


def _network(subject: Subject, name: str) -> PreTrainedModel:
    """The network of a model, for gradients. RecipeError for one that torch does not compute from tokens alone."""
    from pipelines.models.classifier import load_classifier
    from pipelines.models.text_network import needs_its_head
    from pipelines.networks.folder import SAFETENSORS

    if not (subject.folder / SAFETENSORS).is_file():
        raise RecipeError(
            f"evaluation attribution: {name} is served from a graph, which has no gradients; leave this stage out"
        )
    if needs_its_head(subject.folder):
        raise RecipeError(
            f"evaluation attribution: {name} reads more than the tokens of a text, or its head combines several rows; "
            "leave this stage out"
        )
    return load_classifier(subject.folder)
