"""A table of word embeddings of low rank (Acharya et al. 2018)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pipelines.errors import RecipeError
from pipelines.parts.architectures import Architecture
from pipelines.parts.compressions import Calibration, Change, Compression, Level

if TYPE_CHECKING:
    from torch.nn import Embedding
    from transformers import PreTrainedModel

    from pipelines.networks.stored_size import StoredSize


class LowRankEmbeddings(Compression, name="low_rank_embeddings"):
    """Replace the table of word embeddings [V, H] by a product of two, [V, R] and [R, H], from its singular value
    decomposition (§3): of a small network most bytes are its vocabulary, and an answer reads one more small matrix.

    Both train afterwards. The record holds R. Raises RecipeError for a backbone without such a table, and for one
    whose table is its output too.
    """

    paper = "arXiv:1811.00641"
    level = Level.WIDTHS

    share: float = Field(0.25, gt=0, lt=1)
    """R as a share of H, at least one element."""

    def size_after(self, size: StoredSize) -> StoredSize:
        return size._replace(embeddings=size.embeddings * self.share)

    def choose(self, network: PreTrainedModel, calibration: Calibration | None) -> Change:
        path, table = _table(network)
        return {path: {"rank": max(1, round(self.share * table.embedding_dim))}}

    def rebuild(self, network: PreTrainedModel, change: Change) -> PreTrainedModel:
        from pipelines.networks.factored_embedding import FactoredEmbedding

        for values in change.values():
            path, table = _table(network)
            network.base_model.set_submodule(path, FactoredEmbedding.nearest(table, values["rank"]))
        return network


def _table(network: PreTrainedModel) -> tuple[str, Embedding]:
    """The table of word embeddings and its path below the backbone."""
    from torch import nn

    architecture = Architecture.of(network.config)
    table = None
    if architecture is not None:
        path = architecture.embedding_tables[0]
        table = network.base_model.get_submodule(path)
    if not isinstance(table, nn.Embedding):
        raise RecipeError(
            f"compression low_rank_embeddings: the backbone {network.config.model_type} has no whole table of word "
            "embeddings; start from a transformer whose table nothing has replaced"
        )
    uses = [name for name, one in network.named_parameters(remove_duplicate=False) if one is table.weight]
    if len(uses) > 1:
        raise RecipeError(
            f"compression low_rank_embeddings: the table {path} is also {uses[-1]}, the output of this network; "
            "compress a network with the head of a task"
        )
    return path, table
