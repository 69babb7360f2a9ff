"""Base class of heads that tag every word of a sentence."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from pipelines.errors import DataError
from pipelines.parts.heads import Batch, FeatureTokenizer, Head, Signals, backbone_inputs
from pipelines.parts.heads.token_rows import TokenRows, column
from pipelines.parts.heads.word_rows import FeatureRows, rows_of_words
from pipelines.task_families.encoding import IGNORED, EncodedExamples, FieldArrays, pad_rows
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
        outputs = network(**backbone_inputs(batch, network), output_hidden_states=Signal.HIDDEN_STATES in requested)
        signals: dict[Signal, Any] = {Signal.TAG_LOGITS: outputs.logits}
        if Signal.HIDDEN_STATES in requested:
            signals[Signal.HIDDEN_STATES] = outputs.hidden_states
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
        sentences: list[list[str]] = column(examples, "tokens")
        sources = RowTexts.of(
            task.annotations,
            examples,
            range(len(examples)),
            [(words,) for words in sentences],
            [("tokens",)] * len(examples),
        )
        rows, words = rows_of_words(sentences, tokenizer, length, sources)
        tags = _tag_indices(examples, sentences, task) if answers else None
        encoded = EncodedWords(examples, rows, words, tags)
        if encoded.uncovered:
            total = sum(map(len, sentences))
            logging.getLogger(__name__).warning(
                "%d of %d words are beyond %d tokens or have no token; they count as O",
                encoded.uncovered,
                total,
                length,
            )
        return encoded

    def add_features(self, encoded: EncodedExamples, features: Sequence[FeatureTokenizer]) -> None:
        assert isinstance(encoded, EncodedWords)
        sentences = [example["tokens"] for example in encoded.examples]
        others = [rows_of_words(sentences, one.tokenizer, one.length) for one in features]
        total = sum(map(len, encoded.words))
        for number, other in enumerate(others):
            missing = total - sum(map(len, other.words))
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
        encoded.features = FeatureRows(encoded.lengths, encoded.words, others)

    def answer(
        self,
        network: PreTrainedModel,
        encoded: EncodedExamples,
        outputs: Iterable[tuple[NDArray[np.int64], Batch, Signals]],
        task: Task,
        tokenizer: PreTrainedTokenizerFast,
    ) -> list[Answer]:
        assert isinstance(encoded, EncodedWords)
        answers: list[Answer] = [[OUTSIDE] * len(example["tokens"]) for example in encoded.examples]
        for chosen, _, signals in outputs:
            first_tokens = [encoded.first_tokens[item] for item in chosen]
            for item, words, tags in zip(chosen, first_tokens, self._tags(signals, first_tokens), strict=True):
                for word, tag in zip(words[:, 0], tags, strict=True):
                    answers[item][word] = task.labels[tag]
        return answers

    def _tags(self, signals: Signals, first_tokens: Sequence[NDArray[np.int64]]) -> list[list[int]]:
        """Tag indices of the covered words of each row; `first_tokens` is as in `EncodedWords`."""
        best: list[list[int]] = signals[Signal.TAG_LOGITS].argmax(-1).tolist()
        return [[row[token] for token in words[:, 1]] for row, words in zip(best, first_tokens, strict=True)]


class EncodedWords(EncodedExamples):
    """Encoded sentences, each an item."""

    words: Sequence[NDArray[np.int64]]
    """int64 [covered words, 3] of each sentence: index of each word that has a token, and positions of its first and
    its last token."""
    uncovered: int
    """Number of words without a token, over all sentences."""
    features: FeatureRows | None = None
    """The same sentences for the networks that this model reads; None without such networks."""

    def __init__(
        self,
        examples: Sequence[Row],
        rows: TokenRows,
        words: Sequence[NDArray[np.int64]],
        tags: Sequence[NDArray[np.int64]] | None,
    ) -> None:
        self.examples, self.owners = examples, np.arange(len(examples), dtype=np.int64)
        self.lengths, self.words = rows.lengths, words
        self.first_tokens = [one[:, :2] for one in words]
        """int64 [covered words, 2] of each sentence: `words` without the last token."""
        self.uncovered = sum(len(example["tokens"]) for example in examples) - sum(map(len, words))
        self._rows, self._tags = rows, tags

    def collate(self, chosen: NDArray[np.int64]) -> FieldArrays:
        """The sentences `chosen` as rows, their tags at the first token of each word."""
        fields = self._rows.batch(chosen.tolist())
        if self._tags is not None:
            labels = []
            for item in chosen:
                row = np.full(self.lengths[item], IGNORED, dtype=np.int64)
                words, tokens = self.first_tokens[item].T
                row[tokens] = self._tags[item][words]
                labels.append(row)
            fields[Field.TAG_LABELS] = pad_rows(labels, IGNORED)
        if self.features is not None:
            fields |= self.features.collate(chosen, fields[Field.INPUT_IDS].shape[1])
        return fields


def _tag_indices(examples: Sequence[Row], sentences: Sequence[Sequence[str]], task: Task) -> list[NDArray[np.int64]]:
    """Tag indices of each sentence; IGNORED for a tag that no training example has, which can never be predicted."""
    indices = {tag: index for index, tag in enumerate(task.labels)}
    tags = cast("list[list[str]]", column(examples, "tags"))
    for index, (words, given) in enumerate(zip(sentences, tags, strict=True)):
        if len(words) != len(given):
            raise DataError(f"example {index}: its column 'tags' holds {len(given)} tags for {len(words)} tokens")
    return [np.asarray([indices.get(tag, IGNORED) for tag in given], dtype=np.int64) for given in tags]
