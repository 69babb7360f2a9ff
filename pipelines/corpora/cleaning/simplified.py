"""simplified: conversion of traditional to simplified Chinese."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar, Literal

from pipelines.corpora.cleaning import Repair


class Simplified(Repair, name="simplified"):
    """Convert traditional to simplified characters with OpenCC, word by word: 乾淨 becomes 干净, 乾隆 is kept."""

    libraries: ClassVar[tuple[str, ...]] = ("opencc",)

    configuration: Literal["t2s", "tw2s", "hk2s", "tw2sp"] = "t2s"
    """OpenCC's configuration: `t2s` any traditional characters, `tw2s` those of Taiwan, `hk2s` those of Hong Kong;
    `tw2sp` also replaces Taiwanese words by mainland ones (滑鼠 → 鼠标)."""

    def problem(self, language: str) -> str | None:
        """Only Chinese has both scripts; Japanese would be corrupted."""
        return None if language == "zh" else f"it supports Chinese only, not {language!r}"

    def make_repair(self, language: str) -> Callable[[str], str]:
        """A function that converts Chinese texts."""
        convert = _converter(self.configuration)

        def repair(text: str) -> str:
            return text if text.isascii() else str(convert(text))

        return repair


@cache
def _converter(configuration: str) -> Any:
    import opencc

    return opencc.OpenCC(configuration).convert
