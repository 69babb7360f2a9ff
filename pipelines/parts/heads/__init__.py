"""Heads: what is put on a body, how examples are shown to it, and how its outputs become signals and answers.

A head owns the translation from each architecture's own output names and modules to the closed vocabulary of signals.

    plain text    build ▸ signals
    labels        encode ▸ build ▸ signals ▸ answer
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from pipelines.components import Component
from pipelines.vocabulary import Ability, Field, Signal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

    from pipelines.task_families import Answer, Row, Task, TaskFamily
    from pipelines.task_families.encoding import EncodedExamples

Batch: TypeAlias = "Mapping[Field, Any]"
"""Field to tensor; `Field.MEMORY` to a tuple of tensors."""
Signals: TypeAlias = "Mapping[Signal, Any]"
"""Signal to tensor, or to a tuple of tensors where the vocabulary says so."""


class Head(Component):
    """A way of asking a body for something."""

    needs: ClassVar[frozenset[Field]] = frozenset({Field.INPUT_IDS})
    """Fields that `signals` reads. Those of a labelled batch come from `encode`."""
    provides: ClassVar[frozenset[Signal]]
    needs_abilities: ClassVar[frozenset[Ability]] = frozenset()
    """Abilities that the body must offer, all of them."""
    needs_ability_for: ClassVar[Mapping[Signal, Ability]] = {}
    """Signals that are said only of a body with an ability."""
    reads: ClassVar[frozenset[str]] = frozenset()
    """Names of the task families whose examples this head can encode and answer; none for a head on plain text."""
    labels: ClassVar[frozenset[Field]] = frozenset()
    """Fields with the right answers, which `encode` adds to a labelled batch."""
    answers_from: ClassVar[frozenset[Signal]] = frozenset()
    """Signals that `answer` reads. Empty for a head that generates: `answer` then calls the network itself."""

    needs_tokens: ClassVar[frozenset[str]] = frozenset()
    """What it needs of the tokenizer: `counts`."""

    def unfit(self, family: TaskFamily) -> str | None:
        """Why this head, with its options, cannot show examples of a family that it reads; None when it can."""
        return None

    @abstractmethod
    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        """A new network, randomly initialised from the global generator: a body of `config` under this head.

        `task` is None for a stage on plain text. The body's weights carry the names that the architecture itself gives
        them, so the saved folder's body opens in plain transformers.
        """

    @abstractmethod
    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        """Run `network` on `batch` and name what it says. At least `requested` ⊆ `provides` is returned."""

    def encode(
        self,
        examples: Sequence[Row],
        task: Task,
        tokenizer: PreTrainedTokenizerFast,
        length: int,
        *,
        answers: bool = True,
    ) -> EncodedExamples:
        """`examples` as items of at most `length` tokens, with their right answers unless `answers` is False.

        Raises DataError, naming the row, for an example that cannot be shown in `length` tokens.
        """
        raise NotImplementedError(f"{self.name} reads plain text")

    def answer(
        self,
        network: PreTrainedModel,
        encoded: EncodedExamples,
        outputs: Iterable[tuple[NDArray[np.int64], Batch, Signals]],
        task: Task,
        tokenizer: PreTrainedTokenizerFast,
    ) -> list[Answer]:
        """The answer to every example of `encoded`, in order, from one pass over all of its items.

        `outputs` gives the items [B] of each batch, the batch, and at least the signals `answers_from`, on any device, each
        item exactly once in any order.
        """
        raise NotImplementedError(f"{self.name} reads plain text")


def backbone_inputs(batch: Batch) -> dict[str, Any]:
    """The arguments of a Hugging Face body that are in `batch`, by their own names; and where its documents stand, if they do
    not see each other."""
    names = (Field.INPUT_IDS, Field.ATTENTION_MASK, Field.TOKEN_TYPE_IDS, Field.POSITION_IDS)
    inputs: dict[str, Any] = {str(name): batch[name] for name in names if name in batch}
    if Field.DOCUMENT_STARTS in batch:
        from pipelines.networks.document_attention import documents_of

        inputs["documents"] = documents_of(batch[Field.DOCUMENT_STARTS])
    return inputs
