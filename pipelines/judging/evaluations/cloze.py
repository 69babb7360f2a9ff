"""Cloze: the word that was taken out of a text, among others (Taylor 1953; Melamud et al. 2016, §4.2, for its use)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from pydantic import Field as Option

from pipelines.errors import DataError, RecipeError
from pipelines.judging.certainty.resampling import RESAMPLES, interval
from pipelines.judging.evaluations import Evaluation
from pipelines.judging.evaluations.forward_passes import EvaluationSize, ForwardPasses
from pipelines.judging.figures import RecordedFigure, quotient
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipelines.judging.evaluations.context import EvaluationContext
    from pipelines.models.opening import OpenedModel
    from pipelines.task_families import TaskFamily

FIGURE = "cloze_accuracy"
BATCH_ROWS = 64
"""Blanks that are read together."""
CENTER_TOKENS = Field.of_rows("center_tokens")
"""int64 [B, L]: 1 for the blank of each row."""
WINDOW = 5
"""Words on each side of a blank that a model of windows without order reads, as in recipe word2vec."""


@dataclass(frozen=True)
class Blank:
    """A position of a text, and what may have been written there."""

    text: int
    """Index of the text."""
    ids: NDArray[np.int64]
    """[L] its tokens."""
    position: int
    around: NDArray[np.int64]
    """[2 · WINDOW] the nearest words on each side, special tokens left out; −1 where there are fewer."""
    others: NDArray[np.int64]
    """[K] the other candidates."""


class ClozeEvaluation(Evaluation, name="cloze"):
    """Share of the words of test texts that score higher in their contexts than each of some other words.

    The other words are drawn from the same texts, so that frequent ones are frequent among them. For models whose heads
    score a word and negatives, all with the same tokenizer: a table of targets against a whole context, a scorer of
    windows, or the mean of a window's word vectors (CBOW). Chance is 1 / (1 + `others`).
    """

    paper = "Taylor 1953"
    judges = "language models"
    needs_signals = frozenset({Signal.NOISE_LOGITS})

    texts: int = Option(500, ge=1, le=10_000_000)
    """Test texts with blanks: a random sample if the table has more."""
    blanks: int = Option(4, ge=1, le=1000)
    """Blanks of a text, at most; each is read alone."""
    others: int = Option(20, ge=1, le=10_000)
    """Candidates besides the word itself."""
    length: int = Option(64, ge=2)
    """Tokens of a text that are read, from its beginning."""

    @classmethod
    def figures(cls, family: TaskFamily) -> Sequence[RecordedFigure]:
        return [RecordedFigure(FIGURE, cls.name, quotient(1), bounds=(0.0, 1.0))]

    def tiny(self) -> Self:
        return self.model_copy(update={"texts": min(self.texts, 8), "others": min(self.others, 4)})

    def forward_passes(self, size: EvaluationSize) -> Sequence[ForwardPasses]:
        read = min(self.texts, size.documents) * self.blanks
        return [ForwardPasses(read, min(float(self.length), size.tokens), scored=1)]

    def measure(self, context: EvaluationContext) -> dict[str, Any]:
        import torch

        from pipelines.judging.evaluations.held_out import sampled_texts
        from pipelines.models.opening import open_model

        torch.set_num_threads(context.threads)
        chosen = sampled_texts(context, self.texts)
        texts = [context.family.text(context.rows[index]) for index in chosen]
        vocabulary: dict[str, int] | None = None
        blanks: list[Blank] = []
        stages, headline = [], {}
        for stage, models in context.language_models.items():
            samples = []
            for model in models:
                opened = open_model(model.folder, "cpu")
                if vocabulary is None:
                    vocabulary = opened.tokenizer.get_vocab()
                    blanks = self.blanks_of(opened, texts, context.seed)
                elif opened.tokenizer.get_vocab() != vocabulary:
                    raise RecipeError(f"cloze: {stage} has other tokens than the models before it; give all the same")
                right = correct(opened, blanks, stage)
                rows = np.zeros((len(texts), 2))
                for blank, one in zip(blanks, right, strict=True):
                    rows[blank.text] += (one, 1)
                samples.append(rows)
                context.keep(self.name, model, rows)
            accuracy = interval(quotient(1), samples, context.seed)
            stages.append(
                {
                    "stage": stage,
                    "seeds": [model.seed for model in models],
                    "accuracy": {"mean": accuracy.mean, "low": accuracy.low, "high": accuracy.high},
                }
            )
            headline[f"{FIGURE}/{stage}"] = accuracy.mean
        return {
            "blanks": len(blanks),
            "chance": 1 / (1 + self.others),
            "resamples": RESAMPLES,
            "stages": stages,
            "headline": headline,
        }

    def blanks_of(self, opened: OpenedModel, texts: Sequence[str], seed: int) -> list[Blank]:
        """The blanks of all texts, the same for all models of a tokenizer. Raises DataError where there are none."""
        backend, special = opened.tokenizer.backend_tokenizer, list(opened.tokenizer.all_special_ids)
        backend.no_truncation()
        backend.no_padding()
        rows = [
            np.asarray(backend.encode(text, add_special_tokens=False).ids[: self.length], dtype=np.int64)
            for text in texts
        ]
        pool = np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64)
        pool = pool[~np.isin(pool, special)]
        if len(np.unique(pool)) < 2:
            raise DataError(
                "cloze: the test texts have fewer than two different words of the vocabulary; give a dataset with more "
                "text, or the tokenizer a lower min_count"
            )
        random = np.random.default_rng([seed, 17])
        result = []
        for index, ids in enumerate(rows):
            words = np.flatnonzero(~np.isin(ids, special)) if len(ids) > 1 else np.zeros(0, dtype=np.int64)
            for position in np.sort(random.permutation(words)[: self.blanks]).tolist():
                others = random.choice(pool[pool != ids[position]], self.others)
                result.append(Blank(index, ids, position, neighbours(ids, words, position), others))
        return result


def neighbours(ids: NDArray[np.int64], words: NDArray[np.int64], position: int) -> NDArray[np.int64]:
    """[2 · WINDOW] the words of a text nearest to `position`, of those at `words`, in their order; −1 for none."""
    before, after = words[words < position][-WINDOW:], words[words > position][:WINDOW]
    result = np.full(2 * WINDOW, -1, dtype=np.int64)
    result[WINDOW - len(before) : WINDOW] = ids[before]
    result[WINDOW : WINDOW + len(after)] = ids[after]
    return result


def correct(opened: OpenedModel, blanks: Sequence[Blank], stage: str) -> NDArray[np.bool_]:
    """Whether the word itself scores highest, for each blank."""
    import torch

    pad = opened.tokenizer.pad_token_id or 0
    parts = []
    for begin in range(0, len(blanks), BATCH_ROWS):
        batch = {
            name: torch.from_numpy(value) for name, value in fields_of(blanks[begin : begin + BATCH_ROWS], pad).items()
        }
        with torch.no_grad():
            requested = frozenset({Signal.NOISE_LOGITS})
            scores = opened.record.head.signals(opened.network, batch, requested)[Signal.NOISE_LOGITS]
        if len(scores) != len(batch[Field.CENTERS]):
            raise RecipeError(
                f"cloze: {stage} predicts a word from each of its neighbours alone, and has no score for a whole "
                "context; judge a model with architecture: cbow, or one of contexts or windows"
            )
        parts.append((scores[:, :1] > scores[:, 1:]).all(1).numpy())
    return np.concatenate(parts) if parts else np.zeros(0, dtype=bool)


def fields_of(blanks: Sequence[Blank], pad: int) -> dict[Field, NDArray[np.int64]]:
    """A batch with a row for each blank, which is its only centre."""
    length = max(len(one.ids) for one in blanks)
    ids = np.full((len(blanks), length), pad, dtype=np.int64)
    mask, center = np.zeros_like(ids), np.zeros_like(ids)
    for row, one in enumerate(blanks):
        ids[row, : len(one.ids)], mask[row, : len(one.ids)] = one.ids, 1
        center[row, one.position] = 1
    return {
        Field.INPUT_IDS: ids,
        Field.ATTENTION_MASK: mask,
        Field.DOCUMENTS: mask - 1,  # padding is none
        CENTER_TOKENS: center,
        Field.CENTERS: np.asarray([one.ids[one.position] for one in blanks]),
        Field.CONTEXTS: np.stack([one.around for one in blanks]),
        Field.NEGATIVES: np.stack([one.others for one in blanks]),
    }
