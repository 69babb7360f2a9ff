"""Features: a stage's network reads another one's states as its input, word by word."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field, field_validator

from pipelines.recipe.strict import StrictModel


class FeatureSource(StrictModel):
    """A network to read below the stage's own, and which of its layers."""

    model_config = ConfigDict(serialize_by_alias=True)

    from_: str = Field("", alias="from")
    """Stage (or `recipe/stage`) whose network is read."""
    layers: Literal["mix", "top", "concat"] | int = "mix"
    """`mix`: γ · Σ sⱼ · hⱼ over all layers and the embeddings, learned (Peters et al. 2018, eq. 1); `top`: the last;
    `concat`: all of them side by side; a number: that layer, 0 the embeddings."""
    subwords: Literal["first", "mean"] = "mean"
    """Vector of a word that the other tokenizer cuts: that of its first token, or the mean over its tokens."""
    trains: bool = False
    """Whether the network that is read trains too; otherwise it is frozen, and read without dropout."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Share of the elements dropped of what is read."""

    @field_validator("layers", mode="before")
    @classmethod
    def _layers(cls, value: Any) -> Any:
        number = isinstance(value, int) and not isinstance(value, bool) and value >= 0
        if not number and value not in ("mix", "top", "concat"):
            raise ValueError(f"{value!r} is neither mix, top or concat nor the number of a layer (0: the embeddings)")
        return value


def feature_role(number: int) -> str:
    """Role of the stage that feature `number` comes from, among the parents of a step."""
    return f"features:{number}" if number else "features"
