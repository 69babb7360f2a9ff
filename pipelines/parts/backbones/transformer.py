"""Transformer backbones, as implemented in `transformers`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from pipelines.components import did_you_mean
from pipelines.errors import RecipeError
from pipelines.parts.backbones import Backbone
from pipelines.vocabulary import Ability

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerFast

VOCABULARY_MULTIPLE = 64
"""The vocabulary is padded to a multiple of this size, so that matrix products over it run on whole tiles."""
DEFAULT_POSITIONS = 512


class Architecture(NamedTuple):
    """Properties of an architecture of transformers."""

    offers: frozenset[Ability]
    tiny: Mapping[str, int]
    """The smallest useful dimensions, by the architecture's own names."""
    positions: str | None = None
    """Configuration key of the size of the position table; None if positions are relative."""
    positions_after_padding: bool = False
    """Whether the first token uses row padding id + 1 of that table, so that the rows before it are unused."""
    ids: Mapping[str, str] = {"pad_token_id": "pad", "bos_token_id": "bos", "eos_token_id": "eos"}
    """Configuration key → special token of the tokenizer whose id it is set to."""


_ENCODER = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
ARCHITECTURES = {
    "bert": Architecture(
        frozenset({Ability.BIDIRECTIONAL, Ability.ONE_STACK, Ability.WITHIN_DOCUMENTS}),
        _ENCODER,
        "max_position_embeddings",
    ),
    "roberta": Architecture(
        frozenset({Ability.BIDIRECTIONAL, Ability.ONE_STACK, Ability.WITHIN_DOCUMENTS}),
        _ENCODER,
        "max_position_embeddings",
        positions_after_padding=True,
    ),
    "electra": Architecture(
        frozenset({Ability.BIDIRECTIONAL, Ability.DISCRIMINATOR, Ability.ONE_STACK, Ability.WITHIN_DOCUMENTS}),
        {**_ENCODER, "embedding_size": 16},
        "max_position_embeddings",
    ),
    "gpt2": Architecture(
        frozenset({Ability.CAUSAL, Ability.ONE_STACK, Ability.WITHIN_DOCUMENTS}),
        {"n_embd": 32, "n_layer": 2, "n_head": 2, "n_inner": 64},
        "n_positions",
    ),
    "xlnet": Architecture(
        frozenset({Ability.BIDIRECTIONAL, Ability.TWO_STREAM, Ability.MEMORY, Ability.ONE_STACK}),
        {"d_model": 32, "n_layer": 2, "n_head": 2, "d_head": 16, "d_inner": 64},
    ),
    "t5": Architecture(
        frozenset({Ability.ENCODER_DECODER}),
        {"d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 2},
        # decoding starts with the padding token (code of Raffel et al. 2019)
        ids={"pad_token_id": "pad", "eos_token_id": "eos", "decoder_start_token_id": "pad"},
    ),
}
"""Architecture (`model_type` of transformers) → its properties."""
RESERVED = ("vocab_size", "num_labels", "id2label", "label2id", "is_decoder", "is_encoder_decoder")
"""Configuration keys that other parts of a recipe determine."""


class Transformer(Backbone, name="transformer"):
    """An architecture of transformers, with that architecture's own names of dimensions."""

    paper = "arXiv:1706.03762"

    architecture: Literal["bert", "roberta", "electra", "gpt2", "xlnet", "t5"] = "bert"
    """`model_type` of the architecture in transformers."""
    dims: dict[str, int | float | str | bool] = Field({})
    """Keys of the architecture's configuration, for example hidden_size."""
    positions: int | None = Field(None, gt=0)
    """Maximum sequence length in tokens, 512 by default; only for architectures with absolute positions."""

    @model_validator(mode="after")
    def _has_positions(self) -> Self:
        if self.positions is not None and ARCHITECTURES[self.architecture].positions is None:
            raise ValueError(f"{self.architecture} has relative positions and no maximum length; leave positions out")
        return self

    @property
    def offers(self) -> frozenset[Ability]:
        return ARCHITECTURES[self.architecture].offers

    @property
    def max_length(self) -> int | None:
        return None if ARCHITECTURES[self.architecture].positions is None else self.positions or DEFAULT_POSITIONS

    @property
    def label(self) -> str:
        return f"{self.name} {self.architecture}"

    @classmethod
    def variants(cls) -> list[Self]:
        return [cls.model_validate({"architecture": architecture}) for architecture in ARCHITECTURES]

    @classmethod
    def recognise(cls, config: Mapping[str, Any]) -> Self | None:
        kind = ARCHITECTURES.get(str(config.get("model_type")))
        if kind is None:
            return None
        rows = config.get(kind.positions) if kind.positions is not None else None
        unused = int(config.get("pad_token_id") or 0) + 1 if kind.positions_after_padding else 0
        positions = {} if kind.positions is None else {"positions": int(rows or DEFAULT_POSITIONS) - unused}
        return cls.model_validate({"architecture": config["model_type"], **positions})

    def config(self, tokenizer: PreTrainedTokenizerFast, length: int) -> PretrainedConfig:
        import torch
        from huggingface_hub.errors import StrictDataclassError
        from transformers import AutoConfig, AutoModel, PretrainedConfig

        if self.max_length is not None and length > self.max_length:
            raise RecipeError(
                f"backbone: sequences of {length} tokens do not fit {self.max_length} positions; raise "
                "backbone.positions or lower budget.length"
            )
        kind = ARCHITECTURES[self.architecture]
        reserved = {*RESERVED, *kind.ids, kind.positions}
        known = set(AutoConfig.for_model(self.architecture).to_dict()) - set(PretrainedConfig().to_dict()) - reserved
        for key in self.dims:
            if key in reserved:
                raise RecipeError(
                    f"backbone.dims: {key!r} cannot be set here; tokenizer, backbone.positions and head determine it"
                )
            if key not in known:
                raise RecipeError(
                    f"backbone.dims: a {self.architecture} configuration has no key {key!r}.{did_you_mean(key, known)}"
                )
        values: dict[str, object] = {
            "vocab_size": -(-len(tokenizer) // VOCABULARY_MULTIPLE) * VOCABULARY_MULTIPLE,
            **{key: getattr(tokenizer, f"{token}_token_id") for key, token in kind.ids.items()},
        }
        if kind.positions is not None and self.max_length is not None:
            values[kind.positions] = self.max_length + (
                tokenizer.pad_token_id + 1 if kind.positions_after_padding else 0
            )
        try:
            config = AutoConfig.for_model(self.architecture, **values, **self.dims)
            with torch.device("meta"):  # some dimensions are rejected only in construction; this takes no memory
                AutoModel.from_config(config)
        except (StrictDataclassError, ValueError, KeyError) as error:
            reason = str(error.__cause__ or error).strip().splitlines()[-1].strip()
            raise RecipeError(f"backbone.dims: invalid for {self.architecture}: {reason}") from None
        return config

    def tiny(self) -> Self:
        return self.model_copy(update={"dims": {**self.dims, **ARCHITECTURES[self.architecture].tiny}})
