"""Dependency parsing by deep biaffine attention (Dozat & Manning 2017)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

import numpy as np
from pydantic import Field as Option

from pipelines.errors import DataError
from pipelines.parts.heads import Batch, FeatureTokenizer, Head, Signals, backbone_inputs
from pipelines.parts.heads.layer_signals import LAYERS, NEED_ABILITIES, layer_signals
from pipelines.parts.heads.token_rows import TokenRows, column
from pipelines.parts.heads.word_rows import FeatureRows, rows_of_words
from pipelines.task_families.columns import Columns, lengths_of
from pipelines.task_families.dependency_parsing import NO_HEAD, ROOT
from pipelines.task_families.encoding import IGNORED, EncodedExamples, FieldArrays, pad_rows
from pipelines.task_families.excerpt import number_of
from pipelines.task_families.tokenized import RowTexts
from pipelines.vocabulary import Ability, Field, Signal

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

    from pipelines.task_families import Answer, Row, Task

FIRST_TOKENS = Field.of_rows("first_tokens")
"""int64 [B, W]: position of the first token of each word that has one, −1 beyond the last."""
HEAD_WORDS = Field.of_rows("head_words")
"""int64 [B, W]: head of each of these words: 0 for the root, 1 for the first of them; −100 where it has no token, and
beyond the last."""
HEAD_RELATIONS = Field.of_rows("head_relations")
"""int64 [B, W]: relation of each of these words to its head; −100 where training has no such relation, too."""
ARC_LOGITS = Signal.of_head("arc_logits")
"""[B, W, W + 1]: scores of the heads of each word, the root first; −inf for what can be none."""
RELATION_LOGITS = Signal.of_head("relation_logits")
"""[B, W, W + 1, C]: scores of the relations of each word to each head."""


class BiaffineParserHead(Head, name="biaffine_parser"):
    """Head and relation of every word: the tree with the highest sum of arc scores and one root, by a maximum spanning
    arborescence, and the best relation of each of its arcs.

    Words are represented by their first tokens. Words beyond the length of a row, and words without any token, are
    answered without a head; their number is logged.
    """

    paper = "arXiv:1611.01734"
    needs = frozenset({Field.INPUT_IDS, Field.ATTENTION_MASK, FIRST_TOKENS})
    provides = LAYERS | {ARC_LOGITS, RELATION_LOGITS}
    needs_abilities = frozenset({Ability.ONE_STACK})
    needs_ability_for = NEED_ABILITIES
    reads = frozenset({"dependency_parsing"})
    labels = frozenset({HEAD_WORDS, HEAD_RELATIONS})
    answers_from: ClassVar[frozenset[Signal]] = frozenset({ARC_LOGITS, RELATION_LOGITS})
    aligns_words = True
    annotates = True

    arcs: int = Option(500, ge=1)
    """Width of the layers from which arcs are scored (table 1)."""
    relations: int = Option(100, ge=1)
    """Width of the layers from which relations are scored (table 1)."""
    dropout: float = Option(0.33, ge=0, lt=1)
    """Share of the elements dropped of the states, and of these layers (table 1)."""

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        from pipelines.networks.biaffine import BiaffineNetwork

        names = task.labels if task else ()
        config.id2label = dict(enumerate(names))
        config.label2id = {name: index for index, name in enumerate(names)}
        config.parser_arcs, config.parser_relations, config.parser_dropout = self.arcs, self.relations, self.dropout
        return BiaffineNetwork(config)

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        inputs = backbone_inputs(batch, network) | {str(FIRST_TOKENS): batch[FIRST_TOKENS]}
        outputs = network(**inputs, output_hidden_states=bool(LAYERS & requested))
        signals: dict[Signal, Any] = {ARC_LOGITS: outputs.arcs, RELATION_LOGITS: outputs.relations}
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
        sentences = _sentences(examples)
        numbers = range(len(examples))
        texts = [(words,) for words in sentences]
        sources = RowTexts.of(task.annotations, examples, numbers, texts, [("words",)] * len(examples))
        rows, words = rows_of_words(sentences, tokenizer, length, sources)
        sizes = np.asarray([len(sentence) for sentence in sentences], dtype=np.int64)
        trees = _trees(examples, task, words, sizes) if answers else None
        return EncodedTrees(examples, rows, words, trees, sizes)

    def add_features(self, encoded: EncodedExamples, features: Sequence[FeatureTokenizer]) -> None:
        assert isinstance(encoded, EncodedTrees)
        sentences = [example["words"] for example in encoded.examples]
        others = [rows_of_words(sentences, one.tokenizer, one.length) for one in features]
        encoded.features = FeatureRows(encoded.lengths, encoded.words, others)

    def check_encoded(self, encoded: EncodedExamples, length: int, features: Sequence[FeatureTokenizer]) -> None:
        assert isinstance(encoded, EncodedTrees)
        log = logging.getLogger(__name__)
        covered, total = int(lengths_of(encoded.words).sum()), int(encoded.sizes.sum())
        if covered < total:
            log.warning(
                "%d of %d words are beyond %d tokens or have no token; they are answered without a head",
                *(total - covered, total, length),
            )
        for number, other in enumerate(encoded.features.others if encoded.features is not None else ()):
            read = int(lengths_of(other.words).sum())
            if covered and not read:
                raise DataError(
                    f"features: the tokenizer of feature {number} has no token for any of {covered} words; read a "
                    "network that was trained on text of this kind"
                )
            if read < covered:
                log.warning(
                    "feature %d: %d of %d words have no vector: they are beyond %d tokens or have none",
                    *(number, covered - read, covered, features[number].length),
                )

    def answer(
        self,
        network: PreTrainedModel,
        encoded: EncodedExamples,
        outputs: Iterable[tuple[NDArray[np.int64], Batch, Signals]],
        task: Task,
        tokenizer: PreTrainedTokenizerFast,
    ) -> list[Answer]:
        from pipelines.networks.spanning_trees import best_tree

        assert isinstance(encoded, EncodedTrees)
        answers: list[Answer] = [[(NO_HEAD, "")] * size for size in encoded.sizes.tolist()]
        for chosen, _, signals in outputs:
            arcs = signals[ARC_LOGITS].double().cpu().numpy()
            relations = signals[RELATION_LOGITS].argmax(-1).cpu().numpy()
            for row, item in enumerate(chosen.tolist()):
                words = encoded.words[item][:, 0].tolist()
                tree = best_tree(arcs[row, : len(words), : len(words) + 1])
                for at, (word, head) in enumerate(zip(words, tree, strict=True)):
                    # heads count the words that have tokens, answers all words, both from 1
                    above = words[head - 1] + 1 if head else ROOT
                    answers[item][word] = (above, task.labels[relations[row, at, head]])
        return answers


class Trees(NamedTuple):
    """The arcs of sentences, of the words that have tokens."""

    heads: Sequence[NDArray[np.int64]]
    """int64 [W] of each: as in HEAD_WORDS."""
    relations: Sequence[NDArray[np.int64]]
    """int64 [W] of each: as in HEAD_RELATIONS."""


class EncodedTrees(EncodedExamples):
    """Encoded sentences, each an item.

    Args:
        rows: their tokens.
        words: int64 [covered words, 3] of each sentence, as `rows_of_words` returns them.
        trees: their arcs; None where they are not known.
        sizes: int64 [examples], the number of words of each.
    """

    features: FeatureRows | None = None
    """The same sentences for the networks that this model reads; None without such networks."""

    def __init__(
        self,
        examples: Sequence[Row],
        rows: TokenRows,
        words: Sequence[NDArray[np.int64]],
        trees: Trees | None,
        sizes: NDArray[np.int64],
    ) -> None:
        self.examples, self.owners = examples, np.arange(len(examples), dtype=np.int64)
        self.lengths, self.words, self.sizes = rows.lengths, words, sizes
        self._rows, self._trees = rows, trees

    def collate(self, chosen: NDArray[np.int64]) -> FieldArrays:
        fields = self._rows.batch(chosen.tolist())
        fields[FIRST_TOKENS] = pad_rows([self.words[item][:, 1] for item in chosen], -1)
        if self._trees is not None:
            fields[HEAD_WORDS] = pad_rows([self._trees.heads[item] for item in chosen], IGNORED)
            fields[HEAD_RELATIONS] = pad_rows([self._trees.relations[item] for item in chosen], IGNORED)
        if self.features is not None:
            fields |= self.features.collate(chosen, fields[Field.INPUT_IDS].shape[1])
        return fields

    def columns(self) -> Columns:
        trees: Columns = {} if self._trees is None else self._trees._asdict()
        features = {} if self.features is None else self.features.columns()
        return {**self._rows.columns(), "words": self.words, "sizes": self.sizes, **trees, **features}

    def with_columns(self, examples: Sequence[Row], columns: Columns) -> EncodedTrees:
        words, rows = columns["words"], self._rows.with_columns(columns)
        trees = Trees(columns["heads"], columns["relations"]) if "heads" in columns else None
        result = EncodedTrees(examples, rows, words, trees, columns["sizes"])
        if self.features is not None:
            result.features = self.features.with_columns(result.lengths, words, columns)
        return result


def _sentences(examples: Sequence[Row]) -> list[list[str]]:
    sentences: list[list[str]] = column(examples, "words")
    for index, words in enumerate(sentences):
        if len(words) == 0:
            raise DataError(f"example {number_of(examples, index)}: the column 'words' is empty")
    return sentences


def _trees(examples: Sequence[Row], task: Task, words: Sequence[NDArray[np.int64]], sizes: NDArray[np.int64]) -> Trees:
    """The arcs of the examples; DataError naming the first that has not as many heads and relations as words, or a
    head outside the sentence."""
    indices = {name: index for index, name in enumerate(task.labels)}
    heads, relations = [], []
    for index, (example, covered, size) in enumerate(zip(examples, words, sizes.tolist(), strict=True)):
        for name in ("heads", "relations"):
            if (given := len(example.get(name) or ())) != size:
                raise DataError(
                    f"example {number_of(examples, index)}: its column {name!r} holds {given} for {size} words"
                )
        arcs = cast("list[tuple[int, str]]", task.family.gold(example))
        if (wrong := next((head for head, _ in arcs if not ROOT <= head <= size), None)) is not None:
            raise DataError(
                f"example {number_of(examples, index)}: its column 'heads' holds {wrong}, expected 0 (the root) to "
                f"{size}"
            )
        # number of each word among those that have tokens; the root is word 0 of both
        numbers = np.full(size + 1, IGNORED, dtype=np.int64)
        numbers[ROOT] = ROOT
        numbers[covered[:, 0] + 1] = np.arange(1, len(covered) + 1)
        above = np.asarray([numbers[arcs[word][0]] for word in covered[:, 0]], dtype=np.int64)
        kinds = np.asarray([indices.get(arcs[word][1], IGNORED) for word in covered[:, 0]], dtype=np.int64)
        heads.append(above)
        relations.append(np.where(above == IGNORED, IGNORED, kinds))
    return Trees(heads, relations)
