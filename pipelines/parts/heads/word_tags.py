"""Base class of heads that tag every word of a sentence."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from pipelines.errors import DataError
from pipelines.parts.heads import Batch, FeatureTokenizer, Head, Signals, backbone_inputs
from pipelines.parts.heads.layer_signals import LAYERS, NEED_ABILITIES, layer_signals
from pipelines.parts.heads.token_rows import TokenRows, column
from pipelines.parts.heads.word_rows import FeatureRows, rows_of_words
from pipelines.task_families.columns import Columns, lengths_of
from pipelines.task_families.encoding import IGNORED, EncodedExamples, FieldArrays, pad_rows
from pipelines.task_families.excerpt import number_of
from pipelines.task_families.tagging import OUTSIDE
from pipelines.task_families.tokenized import RowTexts
from pipelines.vocabulary import Ability, Field, Signal

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

    from pipelines.task_families import Answer, Row, Task


class WordTaggingHead(Head):
    """A tag for every word, predicted at its first token (Devlin et al. 2018, §5.3).

    Words beyond the length of a row, and words without any token, are tagged `O`; their number is logged.
    """

    needs = frozenset({Field.INPUT_IDS, Field.ATTENTION_MASK})
    needs_abilities = frozenset({Ability.ONE_STACK})
    reads = frozenset({"tagging", "layout_tagging"})
    labels = frozenset({Field.TAG_LABELS})
    needs_ability_for = NEED_ABILITIES
    aligns_words = True
    annotates = True

    transitions: ClassVar[bool] = False
    """Whether the network also scores transitions between tags."""

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        from pipelines.networks.token_classifier import TokenClassifier

        tags = task.labels if task else ()
        config.id2label = dict(enumerate(tags))
        config.label2id = {tag: index for index, tag in enumerate(tags)}
        config.tag_transitions = self.transitions
        return TokenClassifier(config)

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        outputs = network(**backbone_inputs(batch, network), output_hidden_states=bool(LAYERS & requested))
        signals: dict[Signal, Any] = {Signal.TAG_LOGITS: outputs.logits}
        signals |= layer_signals(network, outputs, requested)
        return signals

    def encode(
        self,
        examples: Sequence[Row],
        task: Task,
        tokenizer: PreTrainedTokenizerFast,
        length: int,
        *,
        answers: bool = True,
    ) -> EncodedExamples:
        sentences = _sentences(examples)
        sources = RowTexts.of(
            task.annotations,
            examples,
            range(len(examples)),
            [(words,) for words in sentences],
            [("tokens",)] * len(examples),
        )
        rows, words = rows_of_words(sentences, tokenizer, length, sources)
        tags = _tag_indices(examples, sentences, task) if answers else None
        sizes = np.asarray([len(sentence) for sentence in sentences], dtype=np.int64)
        return EncodedWords(examples, rows, words, tags, sizes)

    def add_features(self, encoded: EncodedExamples, features: Sequence[FeatureTokenizer]) -> None:
        assert isinstance(encoded, EncodedWords)
        sentences = [example["tokens"] for example in encoded.examples]
        others = [rows_of_words(sentences, one.tokenizer, one.length) for one in features]
        encoded.features = FeatureRows(encoded.lengths, encoded.words, others)

    def check_encoded(self, encoded: EncodedExamples, length: int, features: Sequence[FeatureTokenizer]) -> None:
        assert isinstance(encoded, EncodedWords)
        if encoded.uncovered:
            logging.getLogger(__name__).warning(
                "%d of %d words are beyond %d tokens or have no token; they count as O",
                encoded.uncovered,
                encoded.sizes.sum(),
                length,
            )
        total = int(lengths_of(encoded.words).sum())
        for number, other in enumerate(encoded.features.others if encoded.features is not None else ()):
            missing = total - int(lengths_of(other.words).sum())
            if missing and missing == total:
                raise DataError(
                    f"features: the tokenizer of feature {number} has no token for any of {total} words; read a "
                    "network that was trained on text of this kind"
                )
            if missing > 0:
                logging.getLogger(__name__).warning(
                    "feature %d: %d of %d words have no vector: they are beyond %d tokens or have none",
                    *(number, missing, total, features[number].length),
                )

    def answer(
        self,
        network: PreTrainedModel,
        encoded: EncodedExamples,
        outputs: Iterable[tuple[NDArray[np.int64], Batch, Signals]],
        task: Task,
        tokenizer: PreTrainedTokenizerFast,
    ) -> list[Answer]:
        assert isinstance(encoded, EncodedWords)
        answers: list[Answer] = [[OUTSIDE] * size for size in encoded.sizes.tolist()]
        for chosen, _, signals in outputs:
            first_tokens = [encoded.first_tokens(item) for item in chosen]
            for item, words, tags in zip(chosen, first_tokens, self._tags(signals, first_tokens), strict=True):
                for word, tag in zip(words[:, 0], tags, strict=True):
                    answers[item][word] = task.labels[tag]
        return answers

    def _tags(self, signals: Signals, first_tokens: Sequence[NDArray[np.int64]]) -> list[list[int]]:
        """Tag indices of the covered words of each row; `first_tokens` are those of `EncodedWords`."""
        best: list[list[int]] = signals[Signal.TAG_LOGITS].argmax(-1).tolist()
        return [[row[token] for token in words[:, 1]] for row, words in zip(best, first_tokens, strict=True)]


class EncodedWords(EncodedExamples):
    """Encoded sentences, each an item."""

    words: Sequence[NDArray[np.int64]]
    """int64 [covered words, 3] of each sentence: index of each word that has a token, and positions of its first and
    its last token."""
    sizes: NDArray[np.int64]
    """Number of words of each sentence."""
    features: FeatureRows | None = None
    """The same sentences for the networks that this model reads; None without such networks."""

    def __init__(
        self,
        examples: Sequence[Row],
        rows: TokenRows,
        words: Sequence[NDArray[np.int64]],
        tags: Sequence[NDArray[np.int64]] | None,
        sizes: NDArray[np.int64],
    ) -> None:
        self.examples, self.owners = examples, np.arange(len(examples), dtype=np.int64)
        self.lengths, self.words, self.sizes = rows.lengths, words, sizes
        self._rows, self._tags = rows, tags

    @property
    def uncovered(self) -> int:
        """Number of words without a token, over all sentences."""
        return int(self.sizes.sum() - lengths_of(self.words).sum())

    def first_tokens(self, item: int) -> NDArray[np.int64]:
        """int64 [covered words, 2] of a sentence: `words` without the last token."""
        return self.words[item][:, :2]

    def collate(self, chosen: NDArray[np.int64]) -> FieldArrays:
        """The sentences `chosen` as rows, their tags at the first token of each word."""
        fields = self._rows.batch(chosen.tolist())
        if self._tags is not None:
            labels = []
            for item in chosen:
                row = np.full(self.lengths[item], IGNORED, dtype=np.int64)
                words, tokens = self.first_tokens(item).T
                row[tokens] = self._tags[item][words]
                labels.append(row)
            fields[Field.TAG_LABELS] = pad_rows(labels, IGNORED)
        if self.features is not None:
            fields |= self.features.collate(chosen, fields[Field.INPUT_IDS].shape[1])
        return fields

    def columns(self) -> Columns:
        tags: Columns = {} if self._tags is None else {"tags": self._tags}
        features = {} if self.features is None else self.features.columns()
        return {**self._rows.columns(), "words": self.words, "sizes": self.sizes, **tags, **features}

    def with_columns(self, examples: Sequence[Row], columns: Columns) -> EncodedWords:
        words, rows = columns["words"], self._rows.with_columns(columns)
        result = EncodedWords(examples, rows, words, columns.get("tags"), columns["sizes"])
        if self.features is not None:
            result.features = self.features.with_columns(result.lengths, words, columns)
        return result


def _sentences(examples: Sequence[Row]) -> list[list[str]]:
    sentences: list[list[str]] = column(examples, "tokens")
    for index, words in enumerate(sentences):
        if len(words) == 0:
            raise DataError(f"example {number_of(examples, index)}: the column 'tokens' is empty")
    return sentences


def _tag_indices(examples: Sequence[Row], sentences: Sequence[Sequence[str]], task: Task) -> list[NDArray[np.int64]]:
    """Tag indices of each sentence; IGNORED for a tag that no training example has, which can never be predicted."""
    indices = {tag: index for index, tag in enumerate(task.labels)}
    tags = cast("list[list[str]]", column(examples, "tags"))
    for index, (words, given) in enumerate(zip(sentences, tags, strict=True)):
        if len(words) != len(given):
            raise DataError(
                f"example {number_of(examples, index)}: its column 'tags' holds {len(given)} tags for {len(words)} "
                "tokens"
            )
    return [np.asarray([indices.get(tag, IGNORED) for tag in given], dtype=np.int64) for given in tags]
