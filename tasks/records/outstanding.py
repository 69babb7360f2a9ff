"""The claims that have no record, or one that is older than the settings and the code that it measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pipelines.messages.translation import translatable
from pipelines.recipe.claim import Claim
from tasks.datasets.libraries import recipes_of
from tasks.records.claims import RECORDS
from tasks.records.measurements import read_records
from tasks.records.standings import Standing, data_words, standing

MISSING = translatable("no record")
REASONS: dict[Standing, str] = {
    "stale": translatable("stale"),
    "unknown": translatable("recorded before records said of which code"),
}
"""Standing → why a claim is measured again; one that is no more cannot be."""


@dataclass(frozen=True)
class OutstandingClaim:
    """A claim to measure, and with what."""

    name: str
    """`recipe/claim`."""
    reason: str
    data: tuple[str, ...] = ()
    """Datasets in place of the claim's own."""
    variants: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The name, with what is not the claim's own."""
        return " ".join((self.name, *self.data, *self.variants))


@dataclass(frozen=True)
class EstimatedClaim:
    """A claim to measure with the steps that it needs and the store lacks."""

    claim: OutstandingClaim
    steps: Mapping[str, float]
    """Fingerprint → estimated seconds. Over data that is not prepared, the fingerprint of no step that will be."""
    preparations: Mapping[str, float] = field(default_factory=dict)
    """Dataset that is not prepared → estimated seconds of preparing it; the steps over it are estimated from its
    settings."""

    @property
    def seconds(self) -> float:
        """Estimated seconds of all of its steps and preparations, also those that other claims share."""
        return sum(self.steps.values()) + sum(self.preparations.values())


@dataclass(frozen=True)
class Failure:
    """A claim that could not be planned or measured."""

    claim: OutstandingClaim
    reason: str


def outstanding_claims(root: Path, only: str | None = None) -> list[OutstandingClaim]:
    """Every claim of the project in `root` that is to be measured, in the order of recipes.

    `only` is a pattern of names, such as `crf/*`; without `/` it is that of a recipe. A record on other data than the
    claim's own, or of a variant, is measured again with the same, by the numbers of seeds and draws that the claim has
    now.
    """
    library = recipes_of(root)
    records: dict[str, list[Mapping[str, Any]]] = {}
    for record in read_records(root / RECORDS):
        records.setdefault(f"{record['recipe']}/{record['claim']}", []).append(record)
    recipes = [recipe for recipe in library.names() if only is None or fnmatchcase(recipe, only.partition("/")[0])]
    claims = {f"{recipe}/{name}": one for recipe in recipes for name, one in library.load(recipe).claims.items()}
    pattern = "*" if only is None else only if "/" in only else f"{only}/*"
    return [
        outstanding
        for name, claim in claims.items()
        if fnmatchcase(name, pattern)
        for outstanding in _of_claim(root, name, claim, records.get(name, []))
    ]


def _of_claim(root: Path, name: str, claim: Claim, records: list[Mapping[str, Any]]) -> Iterator[OutstandingClaim]:
    own = [record for record in records if _is_own(record, claim)]
    if not own:
        yield OutstandingClaim(name, MISSING)
    for record in records:
        if (reason := REASONS.get(standing(root, record))) is not None:
            others = () if _is_own(record, claim) else _data(record, claim)
            yield OutstandingClaim(name, reason, others, tuple(record.get("variants", ())))


def _is_own(record: Mapping[str, Any], claim: Claim) -> bool:
    """Whether a record is of the claim as it is stated: on its own data, without a variant."""
    return not record.get("variants") and _data(record, claim) == ()


def _data(record: Mapping[str, Any], claim: Claim) -> tuple[str, ...]:
    """The datasets of a record as `cursus claim --data` reads them; none where they are the claim's own."""
    if "on" in record:
        return () if record["on"] == claim.data else tuple(data_words(record))
    names = [one["dataset"] for one in record["data"].get("several", [record["data"]])]
    return () if names == list(claim.datasets) else tuple(names)
