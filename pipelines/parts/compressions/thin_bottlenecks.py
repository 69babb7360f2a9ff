"""The thin layers of MobileBERT in place of the wide ones of its teacher (Sun et al. 2020, §3.1)."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Literal

from pydantic import PositiveInt

from pipelines.errors import RecipeError
from pipelines.parts.compressions import Calibration, Compression, Level, Shrunk

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class ThinBottlenecks(Compression, name="thin_bottlenecks"):
    """New layers of `width` elements inside, with `feed_forwards` small feed-forward networks one after the other, of
    random weights; embeddings, pooler and head are those of the network before, as §3.3 copies them.

    Between the layers states keep their width, so that each new layer can learn from the one that it replaces. Query
    and key read a bottleneck of their own, the value reads the states (§3.1). The activation stays that of the network
    before, which its head shares. Raises RecipeError for a backbone without
    bottlenecks.
    """

    paper = "arXiv:2004.02984"
    level = Level.LAYERS

    width: PositiveInt = 128
    """Elements inside a layer; a multiple of the number of heads."""
    neurons: PositiveInt = 512
    """Neurons of each feed-forward network (table 1)."""
    feed_forwards: PositiveInt = 4
    """Feed-forward networks of a layer (§3.1, stacked)."""
    normalisation: Literal["no_norm", "layer_norm"] = "no_norm"
    """`no_norm` multiplies and adds element by element, which is faster on a phone (§3.2)."""

    @property
    def draws(self) -> bool:
        return True

    def shrink(self, network: PreTrainedModel, calibration: Calibration | None = None) -> Shrunk:
        config = network.config
        if not getattr(config, "use_bottleneck", False):
            raise RecipeError(
                f"compression thin_bottlenecks: the layers of the backbone {config.model_type} have no bottlenecks; "
                "start from a network that has, such as architecture: mobilebert"
            )
        if self.width % config.num_attention_heads:
            raise RecipeError(
                f"compression thin_bottlenecks: width {self.width} is no multiple of the attention heads "
                f"({config.num_attention_heads})"
            )
        student = deepcopy(network)
        changes = {
            "intra_bottleneck_size": self.width,
            "true_hidden_size": self.width,
            "intermediate_size": self.neurons,
            "num_feedforward_networks": self.feed_forwards,
            "normalization_type": self.normalisation,
            "use_bottleneck_attention": False,
            "key_query_shared_bottleneck": True,
        }
        backbone = student.base_model
        for owner in {id(one): one for one in (student.config, backbone.config)}.values():
            for key, value in changes.items():
                setattr(owner, key, value)
        fresh = type(backbone)(student.config)  # draws from the global generator
        backbone.encoder = fresh.encoder
        # of another normalisation, the embeddings learn to be what they were together with the first layer
        embeddings, normalised = (one.get_submodule("embeddings") for one in (backbone, fresh))
        if type(normalised.LayerNorm) is not type(embeddings.LayerNorm):
            embeddings.LayerNorm = normalised.LayerNorm
        return Shrunk(student, {})  # the configuration records the dimensions
