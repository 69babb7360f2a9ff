"""A line in training: its network over the shared backbone, its companions, and what its objectives need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pipelines.parts.objectives import Batch, Companion, Signals
from pipelines.training.assembly.answer_cache import AnswerCache
from pipelines.training.assembly.feature_cache import FeatureCache
from pipelines.training.assembly.own_tokens import OwnAugmentedRows, OwnRows
from pipelines.training.batches.micro_batches import term_counts
from pipelines.vocabulary import Ability, Field, Signal

if TYPE_CHECKING:
    from torch import Tensor, nn
    from transformers import PreTrainedModel

    from pipelines.recipe.schema import Stage
    from pipelines.training.batches.examples import ExampleBatches
    from pipelines.training.batches.plain_text import PlainBatches


class TrainedLine:
    """One line of a stage, or the stage itself where it has no lines; its name is then empty.

    `view` is the stage as it is for this line alone, `network` the backbone with this line's head.
    """

    def __init__(
        self,
        name: str,
        view: Stage,
        network: PreTrainedModel,
        companions: dict[str, Companion],
        batches: PlainBatches | ExampleBatches,
        weight: float = 1.0,
        modules: Mapping[str, nn.Module] | None = None,
    ) -> None:
        assert view.head is not None
        self.name, self.network, self.companions, self.weight = name, network, companions, weight
        self.head, self.objectives = view.head, view.objective
        self.modules: Mapping[str, nn.Module] = modules or {}
        """The modules that objectives own, by the objective's name."""
        self.companion_forward: dict[str, Callable[[Batch, frozenset[Signal]], Signals]] = {}
        for companion, one in companions.items():
            if one.own_tokens is not None and batches.augmented is not None:
                own = batches.augmented.encoded_by(one.own_tokens.encode)
                self.companion_forward[companion] = OwnAugmentedRows(one.forward, own)
            elif one.trains or batches.items is None:
                self.companion_forward[companion] = one.forward
            elif one.own_tokens is not None:
                self.companion_forward[companion] = OwnRows(one.forward, one.own_tokens.encode_items(batches.items))
            else:
                self.companion_forward[companion] = AnswerCache(one.forward, batches.items)
        self.features = FeatureCache(network, batches.items)
        self.needed_signals: frozenset[Signal] = frozenset().union(*(one.required_signals for one in self.objectives))
        readers = Counter(signal for objective in self.objectives for signal in objective.required_signals)
        self.overwritable_signals = frozenset(signal for signal, number in readers.items() if number == 1)
        able = view.backbone is not None and Ability.MEMORY in view.backbone.offers
        self.has_memory = able and Field.MEMORY in view.layout.provides and Signal.MEMORY in view.head.provides

    @property
    def trained_modules(self) -> dict[str, nn.Module]:
        """What trains besides the network, by name: companions, and modules of objectives."""
        companions = {name: one.network for name, one in self.companions.items() if one.trains}
        return {**companions, **{f"objective-{name}": module for name, module in self.modules.items()}}

    def call_companion(self, name: str, batch: Batch, requested: frozenset[Signal]) -> Signals:
        """The signals `requested` of companion `name` for `batch`."""
        return self.companion_forward[name](batch, requested)

    def term_counts(self, batch: dict[Field, Tensor], *, counted: bool) -> dict[str, int]:
        """Loss term → number of items of `batch` that it is a mean over; 0 where the batch is not `counted`."""
        return term_counts(self.objectives, batch, self.network, counted=counted)

    def term_name(self, term: str) -> str:
        """The name of a loss term in the metrics: `masked_lm`, or `mlm/masked_lm` where there are several lines."""
        return f"{self.name}/{term}" if self.name else term
