"""The first heads and neurons of every layer: a sub-network of a network that was trained at several widths (Hou et al.
2020, DynaBERT §2.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pipelines.parts.compressions import Calibration, Change, Compression, Level
from pipelines.parts.compressions.ordered_widths import HEADS, NEURONS, layers_by_width

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from pipelines.networks.stored_size import StoredSize


class LeadingWidths(Compression, name="leading_widths"):
    """Keep the first heads and the first neurons of every layer: bytes and operations fall, and nothing is trained.

    Of a network whose layers are in the order of `ordered_widths`, these are the most important; one that was trained
    at this width answers as it did there. Raises RecipeError for an architecture whose heads and neurons cannot be left
    out alone.
    """

    paper = "arXiv:2004.04037"
    level = Level.HEADS

    share: float = Field(0.5, gt=0, le=1)
    """Share of the heads and of the neurons of each layer to keep, at least one."""

    def size_after(self, size: StoredSize) -> StoredSize:
        return size._replace(attention=size.attention * self.share, feed_forward=size.feed_forward * self.share)

    def choose(self, network: PreTrainedModel, calibration: Calibration | None) -> Change:
        from pipelines.networks.leading_widths import leading

        return {
            one.path: {HEADS: leading(one.heads.count, self.share), NEURONS: leading(one.neurons, self.share)}
            for one in layers_by_width(network, self.name)
        }

    def rebuild(self, network: PreTrainedModel, change: Change) -> PreTrainedModel:
        from pipelines.networks.leading_widths import cut

        heads, neurons = ({path: values[key] for path, values in change.items()} for key in (HEADS, NEURONS))
        cut(layers_by_width(network, self.name), heads, neurons)
        return network
