"""Under which licence a dataset's sources stand, as far as they, or the packages they come with, say."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, metadata, packages_distributions
from typing import Any

from pipelines.corpora.settings.sources import DocumentationSource, PackageSource, Source

UNSTATED = "not stated"
LONGEST = 60
"""Characters beyond which a package's licence field holds the whole licence, not its name."""


def licence_of(source: Source, pinned: Mapping[str, Any]) -> str:
    """What the user states as `licence:`, else what the package states; `pinned` are the sources of the pin."""
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
        told = metadata(name)
    except (PackageNotFoundError, IndexError):
        return UNSTATED
    named = [str(told.json.get(key, "")) for key in ("license_expression", "license")]
    classified = [line.rpartition(" :: ")[2] for line in told.get_all("Classifier") or [] if line.startswith("License")]
    found = next((text for text in [*named, *classified] if text and text != "UNKNOWN" and len(text) <= LONGEST), None)
    return f"{found} (metadata of {name})" if found else UNSTATED
