"""Transformer backbones, as implemented in `transformers`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, SerializeAsAny, field_serializer, field_validator, model_validator

from pipelines.components import did_you_mean
from pipelines.errors import RecipeError
from pipelines.networks.shape import NetworkShape
from pipelines.parts.architectures import Architecture
from pipelines.parts.backbones import MOST_WIDE, Backbone
from pipelines.parts.embeddings import Embedding
from pipelines.vocabulary import Ability

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerFast

VOCABULARY_MULTIPLE = 64
"""The vocabulary is padded to a multiple of this size, so that matrix products over it run on whole tiles."""
DEFAULT_POSITIONS = 512
_COUNTED = re.compile(r"(^|_)(layers?|heads?|size|dim|embd|inner|model|ff|kv)(_|$)")
"""Names of dimensions that count something a network must have."""
RESERVED = ("vocab_size", "num_labels", "id2label", "label2id", "is_decoder", "is_encoder_decoder")
"""Configuration keys that other parts of a recipe determine."""


class Transformer(Backbone, name="transformer"):
    """An architecture of transformers, with that architecture's own names of dimensions."""

    paper = "arXiv:1706.03762"

    architecture: SerializeAsAny[Architecture] = Field(default_factory=Architecture.default)
    """`model_type` of the architecture in transformers, a file of `pipelines/parts/architectures`."""
    dims: dict[str, int | float | str | bool] = Field({})
    """Keys of the architecture's configuration, for example hidden_size."""
    positions: int | None = Field(None, gt=0)
    """Maximum sequence length in tokens, 512 by default; only for architectures with absolute positions."""
    embeddings: tuple[SerializeAsAny[Embedding], ...] = Field((), exclude_if=lambda value: not value)
    """Embeddings of channels, added to the vectors of the tokens."""

    @field_validator("dims")
    @classmethod
    def _possible(cls, dims: dict[str, int | float | str | bool]) -> dict[str, int | float | str | bool]:
        """A negative number of layers builds a network without any, and trains it."""
        for key, value in dims.items():
            if isinstance(value, bool) or not isinstance(value, int):
                continue
            if value < 0 or (value == 0 and _COUNTED.search(key)):
                raise ValueError(f"{key}: {value} is no size; use a number above 0")
            if value > MOST_WIDE:
                raise ValueError(f"{key}: {value:,} is more than any machine holds; the most is {MOST_WIDE:,}")
        return dims

    @model_validator(mode="after")
    def _has_positions(self) -> Self:
        if self.positions is not None and self.architecture.positions is None:
            raise ValueError(
                f"{self.architecture.name} has relative positions and no maximum length; leave positions out"
            )
        return self

    @field_serializer("architecture")
    def _name_alone(self, architecture: Architecture) -> str:
        return architecture.name

    @field_validator("embeddings", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        return value if isinstance(value, (list, tuple)) else [value]

    @model_validator(mode="after")
    def _can_add_embeddings(self) -> Self:
        names = [one.name for one in self.embeddings]
        if names and Ability.ENCODER_DECODER in self.offers:
            fits = ", ".join(one.label for one in self.variants() if Ability.ENCODER_DECODER not in one.offers)
            raise ValueError(
                f"embeddings: an encoder-decoder ({self.label}) has two inputs, so {names[0]} cannot be added to it; "
                f"backbones that fit: {fits}"
            )
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"embeddings: {twice} is named twice; keep one")
        return self

    @property
    def added_embeddings(self) -> tuple[Embedding, ...]:
        return self.embeddings

    @property
    def offers(self) -> frozenset[Ability]:
        return self.architecture.offers

    @property
    def max_length(self) -> int | None:
        return None if self.architecture.positions is None else self.positions or DEFAULT_POSITIONS

    @property
    def token_types(self) -> int:
        key, usual = self.architecture.token_types
        return int(self.dims.get(key, usual))

    @property
    def shape(self) -> NetworkShape:
        layers = next(iter(self.architecture.stacks.values())).count_key
        stated = (self.dims.get(key) for key in (layers, self.architecture.width, "num_attention_heads"))
        return NetworkShape(*(value if isinstance(value, int) else None for value in stated))

    @property
    def label(self) -> str:
        return f"{self.name} {self.architecture.name}"

    @classmethod
    def variants(cls) -> list[Self]:
        return [cls.model_validate({"architecture": architecture}) for architecture in Architecture.all()]

    @classmethod
    def recognise(cls, config: Mapping[str, Any]) -> Self | None:
        kind = Architecture.of(config)
        if kind is None:
            return None
        rows = config.get(kind.positions) if kind.positions is not None else None
        unused = kind.first_position(config)
        positions = {} if kind.positions is None else {"positions": int(rows or DEFAULT_POSITIONS) - unused}
        return cls.model_validate({"architecture": kind, **positions})

    def config(self, tokenizer: PreTrainedTokenizerFast, length: int) -> PretrainedConfig:
        import torch
        from huggingface_hub.errors import StrictDataclassError
        from transformers import AutoConfig, AutoModel, PretrainedConfig

        if self.max_length is not None and length > self.max_length:
            raise RecipeError(
                f"backbone: sequences of {length} tokens do not fit {self.max_length} positions; raise "
                "backbone.positions or lower budget.length"
            )
        kind = self.architecture
        kind.register()
        reserved = {*RESERVED, *kind.ids, kind.positions}
        known = set(AutoConfig.for_model(kind.name).to_dict()) - set(PretrainedConfig().to_dict()) - reserved
        for key in self.dims:
            if key in reserved:
                raise RecipeError(
                    f"backbone.dims: {key!r} cannot be set here; tokenizer, backbone.positions and head determine it"
                )
            if key not in known:
                raise RecipeError(
                    f"backbone.dims: a {kind.name} configuration has no key {key!r}.{did_you_mean(key, known)}"
                )
        values: dict[str, object] = {
            "vocab_size": -(-len(tokenizer) // VOCABULARY_MULTIPLE) * VOCABULARY_MULTIPLE,
            **{key: _special_id(tokenizer, token) for key, token in kind.ids.items()},
        }
        if kind.positions is not None and self.max_length is not None:
            values[kind.positions] = self.max_length + kind.first_position({"pad_token_id": tokenizer.pad_token_id})
        try:
            config = AutoConfig.for_model(kind.name, **values, **self.dims)
            config.num_labels = len(
                PretrainedConfig().id2label or ()
            )  # BART has three of its own, but labels are a head's
            with torch.device("meta"):  # some dimensions are rejected only in construction; this takes no memory
                AutoModel.from_config(config)
        except (StrictDataclassError, ValueError, KeyError) as error:
            reason = str(error.__cause__ or error).strip().splitlines()[-1].strip()
            raise RecipeError(f"backbone.dims: invalid for {kind.name}: {reason}") from None
        return config

    def tiny(self) -> Self:
        return self.model_copy(update={"dims": {**self.dims, **self.architecture.tiny}})


def _special_id(tokenizer: PreTrainedTokenizerFast, token: str) -> int | None:
    """Id of a special token by its name; `end` is the token that ends a document."""
    names = ("sep", "eos") if token == "end" else (token,)
    ids = (getattr(tokenizer, f"{name}_token_id") for name in names)
    return next((int(one) for one in ids if one is not None), None)
