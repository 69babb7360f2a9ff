"""Tagging with types of which an example brings a few sentences (Hou et al. 2020)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pipelines.errors import DataError
from pipelines.parts.heads import Batch, Head, Signals, backbone_inputs
from pipelines.parts.heads.layer_signals import LAYERS, NEED_ABILITIES, layer_signals
from pipelines.parts.heads.row_groups import RowGroups
from pipelines.parts.heads.token_rows import TokenRows, column, refuse_empty
from pipelines.parts.heads.word_rows import rows_of_words
from pipelines.task_families.encoding import IGNORED, FieldArrays, pad_rows
from pipelines.task_families.excerpt import number_of
from pipelines.task_families.few_shot_tagging import tags_of
from pipelines.task_families.tagging import OUTSIDE
from pipelines.vocabulary import Ability, Field, Signal

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

    from pipelines.task_families import Answer, Row, Task
    from pipelines.task_families.columns import Columns
    from pipelines.task_families.encoding import EncodedExamples

EPISODE_ROWS = Field.of_rows("episode_rows")
"""int64 [B, 1 + S]: 1 for the row of the sentence and of each support sentence, 0 for padding up to the example with
the largest support."""
EPISODE_TAGS = Field.of_rows("episode_tags")
"""int64 [B, C]: 1 for the tags of an example, 0 for padding up to the example with the most types."""
SUPPORT_WORDS = Field.of_rows("support_words")
"""int64 [B, S, W]: the first token of each word of a support sentence, −1 for padding."""
SUPPORT_TAGS = Field.of_rows("support_tags")
"""int64 [B, S, W]: the index of its tag among those of the example, −1 for padding."""
NO_WORD = -1


class PrototypeTaggingHead(Head, name="prototype_tagging"):
    """A tag for every word, by the distance of its state from the mean state of the support's words with that tag, and
    the best chain of them.

    Transitions are scored by what they are and not by their types, from `O` to a beginning, from a beginning to an
    inside of the same type or of another: their scores hold for types that training did not have (collapsed dependency
    transfer). A word's state is that of its first token. Words beyond the length of a row are tagged `O`.
    """

    paper = "arXiv:2006.05702"
    needs = frozenset({Field.INPUT_IDS, Field.ATTENTION_MASK, EPISODE_ROWS, EPISODE_TAGS, SUPPORT_WORDS, SUPPORT_TAGS})
    provides = LAYERS | {Signal.TAG_LOGITS, Signal.TAG_TRANSITIONS}
    needs_abilities = frozenset({Ability.ONE_STACK})
    needs_ability_for = NEED_ABILITIES
    reads = frozenset({"few_shot_tagging"})
    labels = frozenset({Field.TAG_LABELS})
    answers_from: ClassVar[frozenset[Signal]] = frozenset({Signal.TAG_LOGITS, Signal.TAG_TRANSITIONS})

    transitions: bool = True
    """Whether transitions are scored; without, every word is tagged by itself."""

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        from pipelines.networks.prototype_tagger import PrototypeTagger

        return PrototypeTagger(config)

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        own = {str(name): batch[name] for name in (EPISODE_ROWS, EPISODE_TAGS, SUPPORT_WORDS, SUPPORT_TAGS)}
        inputs = backbone_inputs(batch, network) | own
        outputs = network(**inputs, output_hidden_states=bool(LAYERS & requested))
        transitions = outputs.transitions if self.transitions else outputs.transitions * 0
        signals = {Signal.TAG_LOGITS: outputs.logits, Signal.TAG_TRANSITIONS: transitions}
        return signals | layer_signals(network, outputs, requested)

    def encode(
        self,
        examples: Sequence[Row],
        task: Task,
        tokenizer: PreTrainedTokenizerFast,
        length: int,
        *,
        answers: bool = True,
    ) -> EncodedExamples:
        for name in ("tokens", "support_tokens", "support_tags", *(("tags",) if answers else ())):
            column(examples, name)
        sentences: list[list[str]] = []
        tags: list[NDArray[np.int64]] = []
        for index, example in enumerate(examples):
            given = example["tags"] if answers else [OUTSIDE] * len(example["tokens"])
            if problem := task.family.problem({**example, "tags": given}):
                raise DataError(f"example {number_of(examples, index)}: {problem}")
            known = {tag: number for number, tag in enumerate(tags_of(example))}
            sentences += [example["tokens"], *example["support_tokens"]]
            tags += [np.asarray([known[tag] for tag in each]) for each in (given, *example["support_tags"])]
        rows, words = rows_of_words(sentences, tokenizer, length)
        counts = np.asarray([1 + len(example["support_tokens"]) for example in examples], dtype=np.int64)
        refuse_empty(rows, examples, np.repeat(np.arange(len(examples)), counts).tolist())
        covered = [own[each[:, 0]] for own, each in zip(tags, words, strict=True)]
        return EncodedEpisodes(examples, rows, counts, [each[:, :2] for each in words], covered, answers=answers)

    def answer(
        self,
        network: PreTrainedModel,
        encoded: EncodedExamples,
        outputs: Iterable[tuple[NDArray[np.int64], Batch, Signals]],
        task: Task,
        tokenizer: PreTrainedTokenizerFast,
    ) -> list[Answer]:
        import torch
        from torch.nn.utils.rnn import pad_sequence

        from pipelines.networks.crf import best_chains

        assert isinstance(encoded, EncodedEpisodes)
        answers: list[Answer] = [[OUTSIDE] * len(example["tokens"]) for example in encoded.examples]
        for chosen, _, signals in outputs:
            rows = signals[Signal.TAG_LOGITS].float()
            scores = rows.view(len(chosen), -1, *rows.shape[1:])[:, 0]
            words = [encoded.words(item) for item in chosen]
            tokens = [torch.from_numpy(each[:, 1]).to(scores.device) for each in words]
            emissions = pad_sequence([row[each] for row, each in zip(scores, tokens, strict=True)], batch_first=True)
            if emissions.shape[1] == 0:
                continue
            lengths = torch.tensor([len(each) for each in tokens], device=scores.device)
            chains = best_chains(emissions, signals[Signal.TAG_TRANSITIONS].float(), lengths)
            for item, each, chain in zip(chosen, words, chains, strict=True):
                known = tags_of(encoded.examples[item])
                for word, tag in zip(each[:, 0], chain, strict=True):
                    answers[item][word] = known[tag]
        return answers


class EncodedEpisodes(RowGroups):
    """Encoded examples, each the row of a sentence and those of its support.

    Args, besides those of RowGroups:
        words: int64 [covered words, 2] for each row, the index of each word that has a token and its first token.
        tags: int64 [covered words] for each row, the index of each word's tag among those of its example.
        answers: whether the tags of the sentences themselves are the ground truth.
    """

    def __init__(
        self,
        examples: Sequence[Row],
        rows: TokenRows,
        counts: NDArray[np.int64],
        words: Sequence[NDArray[np.int64]],
        tags: Sequence[NDArray[np.int64]],
        *,
        answers: bool,
    ) -> None:
        super().__init__(examples, rows, counts, EPISODE_ROWS, None)
        self._words, self._tags, self._answers = words, tags, answers

    def words(self, item: int) -> NDArray[np.int64]:
        """int64 [covered words, 2] of the sentence of an example."""
        return np.ascontiguousarray(self._words[self._firsts[item]])

    def collate(self, chosen: NDArray[np.int64]) -> FieldArrays:
        fields = super().collate(chosen)
        exists = fields[EPISODE_ROWS]
        supports = [[self._firsts[item] + 1 + number for number in range(self._counts[item] - 1)] for item in chosen]
        width = max(1, *(len(self._words[row]) for rows in supports for row in rows))
        shape = (len(chosen), exists.shape[1] - 1, width)
        fields[SUPPORT_WORDS], fields[SUPPORT_TAGS] = np.full((2, *shape), NO_WORD, dtype=np.int64)
        for example, rows in enumerate(supports):
            for number, row in enumerate(rows):
                count = len(self._words[row])
                fields[SUPPORT_WORDS][example, number, :count] = self._words[row][:, 1]
                fields[SUPPORT_TAGS][example, number, :count] = self._tags[row]
        known = [np.ones(len(tags_of(self.examples[item])), dtype=np.int64) for item in chosen]
        fields[EPISODE_TAGS] = pad_rows(known, 0, multiple=1)
        if self._answers:
            labels = np.full(fields[Field.INPUT_IDS].shape, IGNORED, dtype=np.int64)
            for example, item in enumerate(chosen):
                labels[example * exists.shape[1], self.words(item)[:, 1]] = self._tags[self._firsts[item]]
            fields[Field.TAG_LABELS] = labels
        return fields

    def columns(self) -> Columns:
        return {**super().columns(), "words": self._words, "tags": self._tags}

    def with_columns(self, examples: Sequence[Row], columns: Columns) -> EncodedEpisodes:
        rows = self._rows.with_columns(columns)
        words, tags = columns["words"], columns["tags"]
        return EncodedEpisodes(examples, rows, columns["counts"], words, tags, answers=self._answers)
