"""In which proportions the sources of a corpus are mixed, as params.yaml spells it.

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
from pipelines.corpora.settings.sources import Source, Strict


class MixtureSettings(Strict):
    """The shares of the sources of one corpus; exactly one of `weights` and `temperature`."""

    weights: dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]] | None = None
    """Source (or language) → its share, in any scale: 7 and 3 are 0.7 and 0.3."""
    temperature: float | None = Field(default=None, ge=0, le=1)
    """The exponent α of p ∝ n^α over the natural sizes n: 1 is natural, 0 the same for all (Conneau & Lample 2019 §3.1: 0.5)."""
    by: Literal["source", "language"] = "source"
    """What has a share; the sources of one language keep their natural proportions among themselves."""
    unit: Literal["documents", "characters"] = "documents"
    """What shares are shares of, and what n counts."""
    size: float = Field(default=1.0, gt=0, le=100)
    """How much there is in the end: times what all sources together hold."""

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        if self.weights is not None and self.temperature is not None:
            raise ValueError("weights and temperature both say how much of each source there is; keep one of them")
        if self.weights is None and self.temperature is None:
            raise ValueError("say weights (source → share) or temperature (0 to 1), or leave the mixture out")
        return self


class Mixtures(Strict):
    """A mixture of each corpus that has one; the sources of the others keep their natural proportions."""

    general: MixtureSettings | None = None
    domain: MixtureSettings | None = None

    def of_corpora(self) -> dict[str, MixtureSettings]:
        """Corpus → its mixture, where there is one."""
        return {name: mixture for name in type(self).model_fields if (mixture := getattr(self, name)) is not None}


def check_mixture(mixture: MixtureSettings, corpus: str, sources: Sequence[Source], language: str) -> None:
    """ValueError, with its place in the dataset, when a mixture does not fit the sources of its corpus."""
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
    if left := [name for name in members if name not in mixture.weights]:
        _refuse(f"there is no weight for {', '.join(map(repr, left))}; give every {mixture.by} one", corpus, "weights")


def members_of(mixture: MixtureSettings, sources: Sequence[Source], language: str) -> dict[str, list[str]]:
    """What has a share → its collections."""
    found: dict[str, dict[str, None]] = {}
    for source in sources:
        member = source.collection if mixture.by == "source" else source.language or language
        found.setdefault(member, {})[source.collection] = None
    of_collection: Mapping[str, set[str]] = {
        name: {member for member, names in found.items() if name in names} for names in found.values() for name in names
    }
    for name, members in of_collection.items():
        if len(members) > 1:
            raise ValueError(
                f"sources called {name!r} have several languages ({', '.join(sorted(members))}); name them apart"
            )
    return {member: list(names) for member, names in found.items()}


def _refuse(message: str, *place: str) -> None:
    context = {"message": message, "place": ("mixtures", *place)}
    raise PydanticCustomError("mixture", "{message}", context)
