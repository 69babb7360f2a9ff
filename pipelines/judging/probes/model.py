"""A saved model as probes read it: frozen, in evaluation mode, float32; its hidden states are computed once for all
probes.

A word's state is the mean over its pieces (Hewitt & Manning 2019, §3.2), whatever the tokenizer; a text's state is the
mean over its own tokens. Special tokens ([CLS], [SEP]) belong to neither. Words beyond the row, and words without a
token, are not covered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.errors import RecipeError
from pipelines.judging.probes.examples import Examples, word_column, words_of
from pipelines.judging.subjects import Subject
from pipelines.task_families.encoding import attention_masks, pad_rows
from pipelines.task_families.tokenized import RowTexts
from pipelines.task_families.writing_systems import with_leading_spaces

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipelines.models.opening import OpenedModel
    from pipelines.task_families import Row

BATCH = 32
"""Sentences per batch."""
TEXT = "text"
"""Column of a text that is read as a whole."""


@dataclass(frozen=True)
class WordStates:
    """Hidden states of the words of some sentences, or of texts, each then a single word."""

    layers: tuple[NDArray[np.float32], ...]
    """States of each layer, embeddings first, [words, H]; rows of words that are not covered are 0."""
    begins: NDArray[np.int64]
    """Row of the first word of each sentence, and the number of all words, [sentences + 1]."""
    covered: NDArray[np.bool_]
    """Whether each word is covered, [words]."""

    def first(self, sentences: int) -> WordStates:
        """The states of the first `sentences` sentences."""
        begins = self.begins[: sentences + 1]
        return WordStates(tuple(one[: begins[-1]] for one in self.layers), begins, self.covered[: begins[-1]])

    @property
    def owners(self) -> NDArray[np.int64]:
        """Index of each word's sentence, [words]."""
        return np.repeat(np.arange(len(self.begins) - 1), np.diff(self.begins))


@dataclass(frozen=True)
class Encoding:
    """A tokenised sentence."""

    ids: NDArray[np.int64]
    words: NDArray[np.int64]
    """Index of each token's word; −1 for special tokens."""
    channels: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """Channel → [tokens, *shape], from the annotations that the model was trained with."""


class ProbedModel:
    """A model and the examples that it reads."""

    def __init__(self, subject: Subject, examples: Examples, length: int, seed: int, language: str) -> None:
        """Raises RecipeError for a folder that is not a model with weights."""
        from pipelines.models.opening import open_model

        self.subject, self.examples, self.length, self.seed, self.language = subject, examples, length, seed, language
        self.opened: OpenedModel = open_model(subject.folder, "cpu")
        self._word_states: dict[str, WordStates] = {}

    @property
    def family(self) -> Any:
        return self.examples.family

    @cached_property
    def padding(self) -> int:
        """Id of the padding token."""
        return int(self.opened.tokenizer.pad_token_id or 0)

    def word_states(self, table: str, sentences: int) -> WordStates:
        """States of the words, or of the texts, of the first `sentences` examples of `table`. Computed once."""
        if table not in self._word_states:
            examples = self.examples.rows(table)
            rows = [words_of(self.family, row) for row in examples]
            self._word_states[table] = self.read(rows, word_level=self.examples.word_level, examples=examples)
        return self._word_states[table].first(sentences)

    def read(
        self, rows: Sequence[Sequence[str]], *, word_level: bool = True, examples: Sequence[Row] | None = None
    ) -> WordStates:
        """States of the words of `rows`; without `word_level`, each row is one text. `examples` are those that the rows
        are of, whose other columns an annotation of the model may read."""
        encodings = self.encode(rows, word_level=word_level, examples=examples)
        begins = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
        covered = np.zeros(int(begins[-1]), dtype=bool)
        layers: list[NDArray[np.float32]] = []
        for chosen, outputs in self._batches(encodings):
            states = self._states(outputs)
            if not layers:
                layers = [np.zeros((int(begins[-1]), state.shape[-1]), np.float32) for state in states]
            for line, row in enumerate(chosen):
                words = encodings[row].words
                mean = pooling(words, int(begins[row + 1] - begins[row]))
                covered[begins[row] : begins[row + 1]] = mean.any(1)
                for layer, state in zip(layers, states, strict=True):
                    layer[begins[row] : begins[row + 1]] = mean @ state[line, : len(words)]
        return WordStates(tuple(layers), begins, covered)

    def attention(self, rows: Sequence[Sequence[str]]) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Index of each sentence, and how much every word attends to every other, [layers, heads, words, words].

        Attention to a word is the sum over its pieces, attention from a word the mean over its pieces (Clark et al.
        2019, §4.1); attention to special tokens is dropped, so rows sum to less than one.

        Raises RecipeError for a backbone without attention.
        """
        encodings = self.encode(rows)
        for chosen, outputs in self._batches(encodings, attentions=True):
            weights = getattr(outputs, "attentions", None)
            if not weights or weights[0] is None:
                raise RecipeError(
                    f"stage {self.subject.stage!r} returns no attention weights; remove it from this probe"
                )
            if len(counts := {layer.shape[1] for layer in weights}) > 1:
                raise RecipeError(
                    f"stage {self.subject.stage!r} has layers of {min(counts)} to {max(counts)} heads, since a "
                    "compression removed some; probe the attention of the model before it"
                )
            stacked = np.stack([layer.numpy() for layer in weights], axis=1)
            for line, row in enumerate(chosen):
                words = encodings[row].words
                mean = pooling(words, len(rows[row]))
                whole = (mean > 0).astype(np.float32)
                inner = stacked[line, :, :, : len(words), : len(words)]
                yield row, mean @ inner @ whole.T

    def encode(
        self, rows: Sequence[Sequence[str]], *, word_level: bool = True, examples: Sequence[Row] | None = None
    ) -> list[Encoding]:
        """`rows` as tokens, truncated to the row length of the stage.

        Raises DataError for a row without what the model's annotations read.
        """
        fast = self.opened.tokenizer.backend_tokenizer
        frame = fast.num_special_tokens_to_add(False)
        if self.length <= frame:
            raise RecipeError(f"budget.length: {self.length} tokens only hold the {frame} special tokens; raise it")
        fast.no_padding()
        fast.enable_truncation(self.length)
        if word_level:
            encodings = fast.encode_batch([with_leading_spaces(words) for words in rows], is_pretokenized=True)
            words = [[-1 if word is None else word for word in one.word_ids] for one in encodings]
        else:
            encodings = fast.encode_batch([words[0] for words in rows])
            words = [[-1 if special else 0 for special in one.special_tokens_mask] for one in encodings]
        fast.no_truncation()
        column = (word_column(self.family) if word_level else None) or TEXT
        texts = [list(row) if word_level else row[0] for row in rows]
        known = [{column: text} for text in texts] if examples is None else examples
        channels = self._channels(encodings, texts, column, known)
        return [
            Encoding(np.asarray(one.ids, dtype=np.int64), np.asarray(of, dtype=np.int64), made)
            for one, of, made in zip(encodings, words, channels, strict=True)
        ]

    def _channels(
        self, encodings: Sequence[Any], texts: Sequence[str | list[str]], column: str, examples: Sequence[Row]
    ) -> list[dict[str, NDArray[Any]]]:
        """The channels of each row, whose text is in `column` of its example."""
        annotations = self.opened.record.annotations
        if not annotations:
            return [{} for _ in encodings]
        rows = RowTexts(annotations, examples, [(text,) for text in texts], [(column,)] * len(texts), range(len(texts)))
        values = rows.values(encodings)
        return [{name: of_rows[row] for name, of_rows in values.items()} for row in range(len(texts))]

    def _batches(self, encodings: Sequence[Encoding], attentions: bool = False) -> Iterator[tuple[list[int], Any]]:
        """Indices of the rows of each batch, and the backbone's outputs."""
        import torch

        order = sorted(
            (row for row, one in enumerate(encodings) if len(one.ids)), key=lambda row: len(encodings[row].ids)
        )
        options: dict[str, Any] = {"output_attentions": True} if attentions else {"output_hidden_states": True}
        paddings = {one.name: one.padding for made in self.opened.record.annotations for one in made.channels}
        reads = getattr(self.opened.network.base_model, "channels_read", ())
        for first in range(0, len(order), BATCH):
            chosen = order[first : first + BATCH]
            ids = [encodings[row].ids for row in chosen]
            tokens = pad_rows(ids, self.padding)
            if reads:
                options["channels"] = {
                    name: torch.from_numpy(pad_rows([encodings[row].channels[name] for row in chosen], paddings[name]))
                    for name in reads
                    if name in encodings[chosen[0]].channels
                }
            with torch.inference_mode():
                outputs = self.opened.network.base_model(
                    input_ids=torch.from_numpy(tokens),
                    attention_mask=torch.from_numpy(attention_masks(ids, tokens.shape[1])),
                    **options,
                )
            yield chosen, outputs

    def _states(self, outputs: Any) -> list[NDArray[np.float32]]:
        states = getattr(outputs, "hidden_states", None)
        if not states:
            raise RecipeError(f"stage {self.subject.stage!r} returns no hidden states; remove it from this probe")
        return [state.float().numpy() for state in states]


def pooling(words: NDArray[np.int64], number: int) -> NDArray[np.float32]:
    """Weight of each token in the mean of each word, float32 [number, tokens]; rows of words without a token are 0."""
    mean = np.zeros((number, len(words)), dtype=np.float32)
    tokens = np.flatnonzero(words >= 0)
    mean[words[tokens], tokens] = 1.0
    mean /= np.maximum(mean.sum(1, keepdims=True), 1.0)
    return mean
