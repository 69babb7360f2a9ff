"""Base class of heads that tag every word of a sentence."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from pipelines.errors import DataError, RecipeError
from pipelines.parts.heads import Batch, Head, Signals, backbone_inputs
from pipelines.parts.heads.token_rows import TokenRows, column
from pipelines.task_families.encoding import IGNORED, EncodedExamples, FieldArrays, pad_rows
from pipelines.task_families.tagging import OUTSIDE
from pipelines.task_families.writing_systems import with_leading_spaces
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
    reads = frozenset({"tagging"})
    labels = frozenset({Field.TAG_LABELS})

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
        outputs = network(**backbone_inputs(batch), output_hidden_states=Signal.HIDDEN_STATES in requested)
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
        fast = tokenizer.backend_tokenizer
        frame = fast.num_special_tokens_to_add(False)
        if length <= frame:
            raise RecipeError(f"budget.length: {length} tokens have no room besides {frame} special tokens; raise it")
        sentences: list[list[str]] = column(examples, "tokens")
        for index, words in enumerate(sentences):
            if len(words) == 0:
                raise DataError(f"example {index}: the column 'tokens' is empty")
        fast.no_padding()
        fast.enable_truncation(length)
        # not encode_batch_fast, whose encodings lack the word of each token
        encodings = fast.encode_batch([with_leading_spaces(words) for words in sentences], is_pretokenized=True)
        fast.no_truncation()
        first_tokens = [_first_tokens(encoding.word_ids) for encoding in encodings]
        tags = _tag_indices(examples, sentences, task) if answers else None
        encoded = EncodedWords(examples, TokenRows.of(encodings, tokenizer), first_tokens, tags)
        if encoded.uncovered:
            total = sum(map(len, sentences))
            logging.getLogger(__name__).warning(
                "%d of %d words are beyond %d tokens or have no token; they count as O",
                encoded.uncovered,
                total,
                length,
            )
        return encoded

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

    first_tokens: Sequence[NDArray[np.int64]]
    """int64 [covered words, 2] of each sentence: index of each word that has a token, and position of its first
    token."""
    uncovered: int
    """Number of words without a token, over all sentences."""

    def __init__(
        self,
        examples: Sequence[Row],
        rows: TokenRows,
        first_tokens: Sequence[NDArray[np.int64]],
        tags: Sequence[NDArray[np.int64]] | None,
    ) -> None:
        self.examples, self.owners = examples, np.arange(len(examples), dtype=np.int64)
        self.lengths, self.first_tokens = rows.lengths, first_tokens
        self.uncovered = sum(len(example["tokens"]) for example in examples) - sum(map(len, first_tokens))
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
        return fields


def _first_tokens(words: Sequence[int | None]) -> NDArray[np.int64]:
    """int64 [covered words, 2]: each word that has a token, and its first one. `words` is the word of each token."""
    firsts: dict[int, int] = {}
    for token, word in enumerate(words):
        if word is not None:
            firsts.setdefault(word, token)
    return np.asarray(sorted(firsts.items()), dtype=np.int64).reshape(-1, 2)


def _tag_indices(examples: Sequence[Row], sentences: Sequence[Sequence[str]], task: Task) -> list[NDArray[np.int64]]:
    """Tag indices of each sentence; IGNORED for a tag that no training example has, which can never be predicted."""
    indices = {tag: index for index, tag in enumerate(task.labels)}
    tags = cast("list[list[str]]", column(examples, "tags"))
    for index, (words, given) in enumerate(zip(sentences, tags, strict=True)):
        if len(words) != len(given):
            raise DataError(f"example {index}: its column 'tags' holds {len(given)} tags for {len(words)} tokens")
    return [np.asarray([indices.get(tag, IGNORED) for tag in given], dtype=np.int64) for given in tags]
