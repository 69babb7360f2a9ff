"""What the heads have in common that give every word of a sentence a tag."""

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
    """A tag for every word, read at its first token (Devlin et al. 2018, §5.3).

    Words beyond the length of a row, and words of which the tokenizer leaves nothing, are answered `O`; how many is logged.
    """

    needs = frozenset({Field.INPUT_IDS, Field.ATTENTION_MASK})
    needs_abilities = frozenset({Ability.ONE_STACK})
    reads = frozenset({"tagging"})
    labels = frozenset({Field.TAG_LABELS})

    transitions: ClassVar[bool] = False
    """Whether the network also scores going from one tag to the next."""

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        from pipelines.networks.token_classifier import TokenClassifier

        tags = task.labels if task else ()
        config.id2label = dict(enumerate(tags))
        config.label2id = {tag: index for index, tag in enumerate(tags)}
        config.tag_transitions = self.transitions
        return TokenClassifier(config)

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        said = network(**backbone_inputs(batch), output_hidden_states=Signal.HIDDEN_STATES in requested)
        signals: dict[Signal, Any] = {Signal.TAG_LOGITS: said.logits}
        if Signal.HIDDEN_STATES in requested:
            signals[Signal.HIDDEN_STATES] = said.hidden_states
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
            raise RecipeError(f"budget.length: {length} tokens hold only the {frame} that frame a text; raise it")
        sentences: list[list[str]] = column(examples, "tokens")
        for index, words in enumerate(sentences):
            if len(words) == 0:
                raise DataError(f"example {index}: the column 'tokens' is empty")
        fast.no_padding()
        fast.enable_truncation(length)
        # not the fast way, which does not say which word a token is of
        encodings = fast.encode_batch([with_leading_spaces(words) for words in sentences], is_pretokenized=True)
        fast.no_truncation()
        places = [_first_tokens(encoding.word_ids) for encoding in encodings]
        tags = _numbers(examples, sentences, task) if answers else None
        encoded = EncodedWords(examples, TokenRows.of(encodings, tokenizer), places, tags)
        if encoded.uncovered:
            total = sum(map(len, sentences))
            logging.getLogger(__name__).warning(
                "%d of %d words lie beyond %d tokens, or are no token, and count as O", encoded.uncovered, total, length
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
            places = [encoded.places[item] for item in chosen]
            for item, place, tags in zip(chosen, places, self._tags(signals, places), strict=True):
                for word, tag in zip(place[:, 0], tags, strict=True):
                    answers[item][word] = task.labels[tag]
        return answers

    def _tags(self, signals: Signals, places: Sequence[NDArray[np.int64]]) -> list[list[int]]:
        """The numbers of the tags of the covered words of each row, `places` being those words and their first tokens."""
        best: list[list[int]] = signals[Signal.TAG_LOGITS].argmax(-1).tolist()
        return [[row[token] for token in place[:, 1]] for row, place in zip(best, places, strict=True)]


class EncodedWords(EncodedExamples):
    """Sentences, each an item."""

    places: Sequence[NDArray[np.int64]]
    """[words covered, 2] of each sentence: the number of each word that has a token, and the place of its first token."""
    uncovered: int
    """Words of all sentences that have none."""

    def __init__(
        self,
        examples: Sequence[Row],
        rows: TokenRows,
        places: Sequence[NDArray[np.int64]],
        tags: Sequence[NDArray[np.int64]] | None,
    ) -> None:
        self.examples, self.owners = examples, np.arange(len(examples), dtype=np.int64)
        self.lengths, self.places = rows.lengths, places
        self.uncovered = sum(len(example["tokens"]) for example in examples) - sum(map(len, places))
        self._rows, self._tags = rows, tags

    def collate(self, chosen: NDArray[np.int64]) -> FieldArrays:
        """The sentences `chosen` as rows, their tags at the first token of each word."""
        fields = self._rows.batch(chosen.tolist())
        if self._tags is not None:
            labels = []
            for item in chosen:
                row = np.full(self.lengths[item], IGNORED, dtype=np.int64)
                row[self.places[item][:, 1]] = self._tags[item][self.places[item][:, 0]]
                labels.append(row)
            fields[Field.TAG_LABELS] = pad_rows(labels, IGNORED)
        return fields


def _first_tokens(words: Sequence[int | None]) -> NDArray[np.int64]:
    """[covered, 2]: every word of which there is a token, and its first one."""
    firsts: dict[int, int] = {}
    for token, word in enumerate(words):
        if word is not None:
            firsts.setdefault(word, token)
    return np.asarray(sorted(firsts.items()), dtype=np.int64).reshape(-1, 2)


def _numbers(examples: Sequence[Row], sentences: Sequence[Sequence[str]], task: Task) -> list[NDArray[np.int64]]:
    """The tags as numbers; a tag that no training example has cannot be answered, and no loss counts it."""
    number = {tag: index for index, tag in enumerate(task.labels)}
    tags = cast("list[list[str]]", column(examples, "tags"))
    for index, (words, given) in enumerate(zip(sentences, tags, strict=True)):
        if len(words) != len(given):
            raise DataError(f"example {index}: its column 'tags' holds {len(given)} tags for {len(words)} tokens")
    return [np.asarray([number.get(tag, IGNORED) for tag in given], dtype=np.int64) for given in tags]
