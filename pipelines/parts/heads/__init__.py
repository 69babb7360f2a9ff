"""Heads: the modules on a backbone, how examples are encoded for them, and how their outputs become signals and
answers.

A head translates each architecture's own module and output names to the shared vocabulary of signals. Its methods are
called in this order:

    plain text    build ▸ begin ▸ signals
    labels        encode ▸ build ▸ begin ▸ signals ▸ answer
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from pipelines.components import Component
from pipelines.components.declared import DeclaredBatch, whole, wrap_own
from pipelines.parts.architectures import Architecture
from pipelines.vocabulary import Ability, Field, Signal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

    from pipelines.task_families import Answer, Row, Task, TaskFamily
    from pipelines.task_families.encoding import EncodedExamples

Batch: TypeAlias = "Mapping[Field, Any]"
"""From field to tensor, or to a tuple of tensors for `Field.MEMORY`."""
Signals: TypeAlias = "Mapping[Signal, Any]"
"""From signal to tensor, or to a tuple of tensors where the vocabulary says so."""


@dataclass(frozen=True)
class FeatureTokenizer:
    """The tokenizer of a network that a model reads."""

    tokenizer: PreTrainedTokenizerFast
    length: int
    """Number of tokens in the longest row that the network can read."""


class Head(Component):
    """A task-specific module on a backbone, with the encoding of its inputs and the decoding of its outputs."""

    needs: ClassVar[frozenset[Field]] = frozenset({Field.INPUT_IDS})
    """Fields that `signals` and `answer` read. In a labelled batch they come from `encode`."""
    may_read: ClassVar[frozenset[Field]] = frozenset({Field.ATTENTION_MASK})
    """Fields that they read where a batch has them, besides those of `backbone_inputs`. Any other is refused."""
    provides: ClassVar[frozenset[Signal]]
    """Signals that `signals` can compute."""
    needs_abilities: ClassVar[frozenset[Ability]] = frozenset()
    """Abilities that the backbone must offer, all of them."""
    needs_ability_for: ClassVar[Mapping[Signal, Ability]] = {}
    """Signals that are available only on a backbone with an ability."""
    reads: ClassVar[frozenset[str]] = frozenset()
    """Names of the task families whose examples this head can encode and answer; none for a head on plain text."""
    labels: ClassVar[frozenset[Field]] = frozenset()
    """Fields with the ground truth, which `encode` adds to a labelled batch."""
    answers_from: ClassVar[frozenset[Signal]] = frozenset()
    """Signals that `answer` reads. Empty for a generative head, whose `answer` calls the network itself."""
    aligns_words: ClassVar[bool] = False
    """Whether its rows can be aligned by words with those of another tokenizer: `add_features`."""
    needs_tokens: ClassVar[frozenset[str]] = frozenset()
    """Required features of the tokenizer (`Tokenizer.offers`): `counts`."""
    annotates: ClassVar[bool] = False
    """Whether `encode` puts the channels of the task's annotations alongside the tokens."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        wrap_own(cls, "signals", _signals_of_declared)
        wrap_own(cls, "answer", _answer_from_declared)

    @property
    def required_abilities(self) -> frozenset[Ability]:
        """Abilities that the backbone must offer for this head with its options."""
        return self.needs_abilities

    def unfit(self, family: TaskFamily) -> str | None:
        """Why this head, with its options, cannot encode examples of a task family that it `reads`; None if it can."""
        return None

    @abstractmethod
    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        """A new network, randomly initialised from the global generator: a backbone of `config` with this head.

        `task` is None for a stage on plain text. The backbone's weights have the names that the architecture gives
        them, so that plain transformers can load the backbone from the saved folder.
        """

    def continues(self, other: Head) -> bool:
        """Whether this head takes the weights of `other`, the head of the start on the same task: one of its kind."""
        return self.name == other.name

    def begin(self, network: PreTrainedModel) -> None:
        """Set the weights of this head in `network`, which `build` made, that depend on those of its backbone.

        Called once for each new head, before the first step of its stage: the backbone has the weights that the stage
        begins with, random ones where it starts from none. Not called where the head continues from the start of the
        stage or a checkpoint brings it, nor when a folder is opened: its weights then are those that were saved.
        Shapes stay as `build` made them, the backbone stays as it is, and random numbers come from the global
        generator.
        """

    @abstractmethod
    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        """Run `network` on `batch` and return its signals: at least `requested`, a subset of `provides`."""

    def encode(
        self,
        examples: Sequence[Row],
        task: Task,
        tokenizer: PreTrainedTokenizerFast,
        length: int,
        *,
        answers: bool = True,
    ) -> EncodedExamples:
        """Encode `examples` as items of at most `length` tokens, with their ground truth unless `answers` is False.

        Raises DataError, naming the row, for an example that cannot be encoded in `length` tokens.
        """
        raise NotImplementedError(f"head {self.name}: for plain text only, it does not encode labelled examples")

    def add_features(self, encoded: EncodedExamples, features: Sequence[FeatureTokenizer]) -> None:
        """Let the batches of `encoded` hold the same rows for the networks that the model reads: Field.FEATURE_…."""
        raise NotImplementedError(f"head {self.name}: its rows cannot be aligned with those of another tokenizer")

    def check_encoded(self, encoded: EncodedExamples, length: int, features: Sequence[FeatureTokenizer]) -> None:
        """Log what rows of `length` tokens leave out, once all examples are encoded.

        Raises DataError where nothing is left, as with a tokenizer of `features` that has no token for any word.
        """

    def answer(
        self,
        network: PreTrainedModel,
        encoded: EncodedExamples,
        outputs: Iterable[tuple[NDArray[np.int64], Batch, Signals]],
        task: Task,
        tokenizer: PreTrainedTokenizerFast,
    ) -> list[Answer]:
        """The predicted answer to each example of `encoded`, in order, from one pass over all of its items.

        `outputs` yields for each batch the indices of its items [B], the batch, and at least the signals
        `answers_from`, on any device; each item exactly once, in any order.
        """
        raise NotImplementedError(f"head {self.name}: for plain text only, it does not answer labelled examples")


def _declared(head: Head, batch: Batch) -> Batch:
    return DeclaredBatch(batch, head, head.needs | head.may_read, "`needs` or `may_read`")


def _signals_of_declared(signals: Callable[..., dict[Signal, Any]]) -> Callable[..., dict[Signal, Any]]:
    """`signals` with a batch that refuses fields which the head does not declare."""

    def read(self: Head, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        return signals(self, network, _declared(self, batch), requested)

    return read


def _answer_from_declared(answer: Callable[..., list[Answer]]) -> Callable[..., list[Answer]]:
    """`answer` with batches that refuse fields which the head does not declare."""

    def read(self: Head, network: Any, encoded: Any, outputs: Iterable[tuple[Any, Batch, Any]], *rest: Any) -> Any:
        declared = ((items, _declared(self, batch), signals) for items, batch, signals in outputs)
        return answer(self, network, encoded, declared, *rest)

    return read


def backbone_inputs(batch: Batch, network: PreTrainedModel) -> dict[str, Any]:
    """Keyword arguments for the Hugging Face backbone of `network` from `batch`.

    Also `visible` if the batch has an attention pattern, or else `documents` if its rows have `DOCUMENT_STARTS`, and
    `channels` if the backbone has embeddings that read them.
    """
    names = (
        *(Field.INPUT_IDS, Field.ATTENTION_MASK, Field.TOKEN_TYPE_IDS, Field.POSITION_IDS, Field.VISIBLE),
        *(Field.FEATURE_IDS, Field.FEATURE_MASK, Field.FEATURE_WORDS, Field.FEATURE_STATES),
    )
    batch = whole(batch)  # what a backbone reads is no declaration of the head's
    inputs: dict[str, Any] = {str(name): batch[name] for name in names if name in batch}
    if Field.POSITION_IDS in batch and (architecture := Architecture.of(network.config)) is not None:
        inputs[str(Field.POSITION_IDS)] = batch[Field.POSITION_IDS] + architecture.first_position(network.config)
    if Field.DOCUMENT_STARTS in batch and Field.VISIBLE not in batch:
        from pipelines.networks.document_attention import documents_of

        inputs["documents"] = documents_of(batch[Field.DOCUMENT_STARTS])
    # none on a network that a runtime computes
    if read := getattr(getattr(network, "base_model", None), "channels_read", ()):
        inputs["channels"] = {name: batch[Field(name)] for name in read if name in batch}
    return inputs
