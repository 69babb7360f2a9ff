"""The networks that a stage's network reads: their settings, weights, tokenizers, and what was learned of their layers.

finished model ──▶ settings in the configuration ──▶ network with random readers ──▶ weights of the model
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from pipelines.components import discover
from pipelines.errors import RecipeError
from pipelines.models.features import feature_settings
from pipelines.models.opening import CONFIG_KEY, OpenedModel, open_feature_tokenizers, open_tokenizer
from pipelines.parts.backbones import Backbone
from pipelines.parts.heads import FeatureTokenizer

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

    from pipelines.networks.features import FeatureReader
    from pipelines.recipe.features import FeatureSource
    from pipelines.recipe.job import Job

UNLIMITED = 4096
"""Number of tokens in the longest row for a network that reads rows of any length."""
OTHER_KEYS = (CONFIG_KEY, "architectures", "dtype")
"""Keys of a saved configuration that are not the backbone's."""


def settings_of(source: FeatureSource, opened: OpenedModel) -> dict[str, Any]:
    """The settings of a `FeatureReader` of a finished model. Raises RecipeError where it cannot be read so."""
    import torch

    config, name = opened.network.config, f"features: from: {source.from_}"
    if config.is_encoder_decoder or feature_settings(config):
        what = "an encoder and a decoder" if config.is_encoder_decoder else "a network that reads features itself"
        raise RecipeError(f"{name}: is {what}; read a network with a single stack of layers over its own tokens")
    if opened.record.extensions:
        raise RecipeError(
            f"{name}: strategy {opened.record.extensions[0].name} added modules to it, which are not part of its "
            "backbone; read the stage that it started from"
        )
    row = torch.zeros((1, 2), dtype=torch.long, device=opened.network.device)
    states = opened.network.base_model(row, output_hidden_states=True).hidden_states
    widths = [state.shape[-1] for state in states]
    if isinstance(source.layers, int) and source.layers >= len(widths):
        raise RecipeError(f"{name}: has the layers 0 to {len(widths) - 1}, and layers is {source.layers}")
    if source.layers == "mix" and len(set(widths)) > 1:
        shown = ", ".join(map(str, widths))
        raise RecipeError(f"{name}: its layers are {shown} wide and cannot be mixed; use layers: top or concat")
    own = config.to_diff_dict() | {"model_type": config.model_type}
    return {
        **source.model_dump(exclude={"from_"}),
        "config": {key: value for key, value in own.items() if key not in OTHER_KEYS},
        "widths": widths,
        "length": _longest_row(opened),
    }


def _longest_row(opened: OpenedModel) -> int:
    """Number of tokens in the longest row that a network can read; for one of an unknown architecture, of those that it
    was trained on."""
    discover(Backbone.__module__)
    members = [member for member in Backbone.members.values() if issubclass(member, Backbone)]
    known = next((one for member in members if (one := member.recognise(opened.network.config.to_dict()))), None)
    return int(opened.tokenizer.model_max_length) if known is None else known.max_length or UNLIMITED


def load_features(network: PreTrainedModel, read: Sequence[OpenedModel]) -> None:
    """Give the readers of `network` the weights of the models that are `read`."""
    for reader, opened in zip(readers_of(network), read, strict=True):
        weights = opened.network.base_model.state_dict()
        reader.encoder.load_state_dict({key: weights[key] for key in reader.encoder.state_dict()})


def readers_of(network: PreTrainedModel) -> list[FeatureReader]:
    """The networks that `network` reads, in the order of the stage's `features`."""
    backbone = network.base_model
    return cast("list[FeatureReader]", backbone.readers) if feature_settings(network.config) else []


def feature_tokenizers_of(job: Job, config: PretrainedConfig) -> tuple[FeatureTokenizer, ...]:
    """The tokenizers of the networks that a stage's network of `config` reads: those of the stages that it names, or
    of its start."""
    if job.features:
        lengths = [settings["length"] for settings in feature_settings(config)]
        folders = zip(job.features, lengths, strict=True)
        return tuple(FeatureTokenizer(open_tokenizer(folder), length) for folder, length in folders)
    return open_feature_tokenizers(job.start, config) if job.start is not None else ()


def mixed_layers(network: PreTrainedModel) -> dict[str, float]:
    """What was learned of the layers of each mixed feature: `features/<n>/gamma`, and the share of each layer."""
    learned: dict[str, float] = {}
    for number, reader in enumerate(readers_of(network)):
        if reader.mix is not None:
            learned[f"features/{number}/gamma"] = round(float(reader.mix.gamma.detach()), 6)
            shares = reader.mix.weights.detach().float().softmax(0).tolist()
            learned |= {f"features/{number}/layer_{layer}": round(share, 6) for layer, share in enumerate(shares)}
    return learned
