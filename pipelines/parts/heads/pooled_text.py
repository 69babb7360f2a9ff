"""Base class of heads that score one pooled vector of a row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

import numpy as np
from pydantic import Field as Option

from pipelines.errors import RecipeError
from pipelines.parts.heads import Batch, Head, Signals, backbone_inputs
from pipelines.parts.heads.layer_signals import LAYERS, NEED_ABILITIES, layer_signals
from pipelines.parts.heads.token_rows import TokenRows, column, refuse_empty, token_rows
from pipelines.task_families.columns import Columns
from pipelines.task_families.encoding import EncodedExamples, FieldArrays
from pipelines.task_families.tokenized import RowTexts
from pipelines.vocabulary import Ability, Field, Signal

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor
    from torch.nn import Embedding
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

    from pipelines.networks.sequence_classifier import ClassificationOutput
    from pipelines.task_families import Row, Task, TaskFamily

PAIR = ("text_a", "text_b")


class PooledTextHead(Head):
    """A pooled vector for each row, and scores computed from it."""

    needs = frozenset({Field.INPUT_IDS, Field.ATTENTION_MASK})
    needs_abilities = frozenset({Ability.ONE_STACK})
    annotates = True
    needs_ability_for: ClassVar[Mapping[Signal, Ability]] = {
        **NEED_ABILITIES,
        Signal.NEXT_LOGITS: Ability.CAUSAL,
    }

    skips_layers: ClassVar[bool] = False
    """Whether the network leaves out layers for some texts, which no serving runtime does."""

    pooling: Literal["cls", "mean", "last", "concat", "pooler"] = "mean"
    """Representation of a text: the top hidden state of its first token (`cls`) or of its last (`last`: for causal
    backbones, and XLNet, whose `<cls>` comes last), the mean over its tokens, last, maximum and mean concatenated
    (`concat`; Howard & Ruder 2018, §3.3), or the first state through the backbone's own pooler, a dense layer and tanh
    that pairs of segments pre-train (`pooler`; Devlin et al. 2018, §3.1). With few labels and a small backbone, the
    mean is much better than the first."""
    hidden: int | None = Option(None, ge=1)
    """Width of a block between backbone and scores: normalisation, dropout, linear, ReLU (Howard & Ruder 2018, §3.3:
    50); no block if null."""

    @property
    def required_abilities(self) -> frozenset[Ability]:
        return self.needs_abilities | ({Ability.SEGMENT_PAIRS} if self.pooling == "pooler" else frozenset())

    def _network(self, config: PretrainedConfig, outputs: Sequence[str], orders: int = 1) -> PreTrainedModel:
        """A backbone of `config` with one score for each of `outputs`."""
        from pipelines.networks.sequence_classifier import SequenceClassifier

        config.classifier_pooling, config.classifier_hidden, config.classifier_orders = (
            self.pooling,
            self.hidden,
            orders,
        )
        config.id2label = dict(enumerate(outputs))
        config.label2id = {output: index for index, output in enumerate(outputs)}
        return SequenceClassifier(config)

    def _read(
        self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]
    ) -> tuple[ClassificationOutput, dict[Signal, Any]]:
        """The outputs of `network`, and the signals that do not depend on the meaning of its scores."""
        outputs: ClassificationOutput = network(
            **backbone_inputs(batch, network), output_hidden_states=bool(LAYERS & requested)
        )
        signals = {Signal.POOLED: outputs.pooled, **layer_signals(network, outputs, requested)}
        if Signal.NEXT_LOGITS in requested:
            signals[Signal.NEXT_LOGITS] = _next_logits(network, cast("Tensor", outputs.last_hidden_state))
        return outputs, signals


def _next_logits(network: PreTrainedModel, top: Tensor) -> Tensor:
    """[R, L, V]: logits of the next token, with the backbone's tied input embeddings (Radford et al. 2018, eq. 2)."""
    backbone = cast("PreTrainedModel", network.base_model)
    # attention modules state whether they are causal; a backbone without attention reads from left to right
    bidirectional = any(getattr(module, "is_causal", None) is False for module in backbone.modules())
    if bidirectional or not network.config.tie_word_embeddings:
        why = "is bidirectional" if bidirectional else "does not tie its output to its embeddings"
        raise RecipeError(
            "head: the signal next_logits requires a causal backbone with tied embeddings, and this "
            f"{network.config.model_type} {why}; leave out the objective that needs it"
        )
    scores: Tensor = top @ cast("Embedding", backbone.get_input_embeddings()).weight.T
    return scores


class EncodedTexts(EncodedExamples):
    """Encoded texts or pairs, each an item."""

    values: FieldArrays
    """Ground truth by field, one value for each example."""

    def __init__(self, examples: Sequence[Row], rows: TokenRows, orders: int) -> None:
        self.examples, self.owners = examples, np.arange(len(examples), dtype=np.int64)
        self.values = {}
        self._rows, self._orders = rows, orders
        self.lengths = rows.lengths.reshape(-1, orders).sum(1)

    def collate(self, chosen: NDArray[np.int64]) -> FieldArrays:
        """[B · orders, L] rows, the orders of an example adjacent, and [B] values."""
        rows = (chosen[:, None] * self._orders + np.arange(self._orders)).ravel().tolist()
        return self._rows.batch(rows) | {name: value[chosen] for name, value in self.values.items()}

    def columns(self) -> Columns:
        return {**self._rows.columns(), **{str(name): value for name, value in self.values.items()}}

    def with_columns(self, examples: Sequence[Row], columns: Columns) -> EncodedTexts:
        result = EncodedTexts(examples, self._rows.with_columns(columns), self._orders)
        result.values = {name: columns[str(name)] for name in self.values}
        return result


def encode_texts(
    examples: Sequence[Row],
    task: Task,
    tokenizer: PreTrainedTokenizerFast,
    length: int,
    both_orders: bool,
) -> EncodedTexts:
    """Encode the texts or pairs of `examples`, depending on their task family; pairs as two rows each with
    `both_orders`.

    Raises DataError for an example without text, or whose text has no tokens.
    """
    orders = 2 if both_orders else 1
    texts: Sequence[Any]
    columns: Sequence[tuple[str, ...]]
    if is_pair(task):
        pairs = list(zip(*(column(examples, name) for name in PAIR), strict=True))
        texts = [texts for a, b in pairs for texts in ((a, b), (b, a))[:orders]]
        columns = [PAIR, PAIR[::-1]][:orders] * len(examples)
    else:
        texts = column(examples, "text")
        columns = [("text",)] * len(examples)
    numbers = [index // orders for index in range(len(texts))]
    sources = RowTexts.of(task.annotations, examples, numbers, texts, columns)
    rows = token_rows(texts, tokenizer, length, sources=sources)
    refuse_empty(rows, examples, numbers)
    return EncodedTexts(examples, rows, orders)


def highest(encoded: EncodedExamples, outputs: Iterable[tuple[NDArray[np.int64], Batch, Signals]]) -> NDArray[np.int64]:
    """int64 [items]: index of the class or choice with the highest score."""
    best = np.zeros(len(encoded), dtype=np.int64)
    for chosen, _, signals in outputs:
        best[chosen] = signals[Signal.LOGITS].argmax(-1).cpu().numpy()
    return best


def is_pair(task: Task) -> bool:
    """Whether an example of `task` is two texts."""
    return set(PAIR) <= set(task.family.columns)


def one_order(family: TaskFamily) -> str | None:
    """Why examples of `family` cannot be read in both orders; None if they are pairs."""
    if set(PAIR) <= set(family.columns):
        return None
    return f"both_orders: an example of {family.name} is not a text pair; leave the option out"
