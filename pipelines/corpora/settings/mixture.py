"""Settings under `mixtures:` in params.yaml: the proportions in which the sources of a corpus are mixed.

mixtures:
  general: {weights: {wikipedia: 0.7, novels: 0.3}}      # by the name of the source
  domain: {temperature: 0.5, by: language}               # p ∝ n^α
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from pipelines.components import did_you_mean
from pipelines.corpora.settings.sources import Source, StrictSettings


class MixtureSettings(StrictSettings):
    """Shares of the sources of one corpus; exactly one of `weights` and `temperature`."""

    weights: dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]] | None = None
    """Source (or language) → its share, in any scale: 7 and 3 are 0.7 and 0.3."""
    temperature: float | None = Field(default=None, ge=0, le=1)
    """Exponent α of p ∝ n^α over the natural sizes n: 1 is natural, 0 uniform (Conneau & Lample 2019 §3.1: 0.5)."""
    by: Literal["source", "language"] = "source"
    """Unit that gets a share; sources of one language keep their natural proportions among themselves."""
    unit: Literal["documents", "characters"] = "documents"
    """Unit in which sizes and shares are measured."""
    size: float = Field(default=1.0, gt=0, le=100)
    """Size of the mixture, relative to all sources together."""

    @model_validator(mode="after")
    def _has_weights_or_temperature(self) -> Self:
        if self.weights is not None and self.temperature is not None:
            raise ValueError("weights and temperature are mutually exclusive; keep one of them")
        if self.weights is None and self.temperature is None:
            raise ValueError("set weights (source → share) or temperature (0 to 1), or remove the mixture")
        return self


class Mixtures(StrictSettings):
    """Mixtures by corpus; without one, sources keep their natural proportions."""

    general: MixtureSettings | None = None
    domain: MixtureSettings | None = None

    def by_corpus(self) -> dict[str, MixtureSettings]:
        """Corpus → mixture, for corpora that have one."""
        return {name: mixture for name in type(self).model_fields if (mixture := getattr(self, name)) is not None}


def check_mixture(mixture: MixtureSettings, corpus: str, sources: Sequence[Source], language: str) -> None:
    """Raise ValueError, with the path of the key, when a mixture does not fit the sources of its corpus."""
    members = members_of(mixture, sources, language)
    if len(members) < 2:
        (only,) = members
        _refuse(f"{corpus!r} has one {mixture.by}, {only!r}: there is nothing to mix", corpus)
    if mixture.weights is None:
        return
    for name in mixture.weights:
        if name not in members:
            message = f"no {mixture.by} of {corpus!r} is called {name!r}.{did_you_mean(name, members)}"
            _refuse(message, corpus, "weights", name)
    if missing := [name for name in members if name not in mixture.weights]:
        _refuse(
            f"there is no weight for {', '.join(map(repr, missing))}; every {mixture.by} needs one", corpus, "weights"
        )


def members_of(mixture: MixtureSettings, sources: Sequence[Source], language: str) -> dict[str, list[str]]:
    """Member (source or language) → its collections."""
    collections: dict[str, dict[str, None]] = {}
    for source in sources:
        member = source.collection if mixture.by == "source" else source.language or language
        collections.setdefault(member, {})[source.collection] = None
    of_collection: Mapping[str, set[str]] = {
        name: {member for member, names in collections.items() if name in names}
        for names in collections.values()
        for name in names
    }
    for name, members in of_collection.items():
        if len(members) > 1:
            raise ValueError(
                f"sources called {name!r} have several languages ({', '.join(sorted(members))}); give them different "
                "names"
            )
    return {member: list(names) for member, names in collections.items()}


def _refuse(message: str, *path: str) -> None:
    context = {"message": message, "path": ("mixtures", *path)}
    raise PydanticCustomError("mixture", "{message}", context)
