"""simplified: Chinese in traditional characters, written in simplified ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar, Literal

from pipelines.corpora.cleaning import Repair


class Simplified(Repair, name="simplified"):
    """Traditional to simplified characters, by OpenCC, which looks at words: 乾淨 becomes 干净 and 乾隆 stays."""

    libraries: ClassVar[tuple[str, ...]] = ("opencc",)

    configuration: Literal["t2s", "tw2s", "hk2s", "tw2sp"] = "t2s"
    """What is read, in OpenCC's words: `t2s` traditional characters of any kind, `tw2s` those of Taiwan, `hk2s` those of Hong
    Kong; `tw2sp` also turns words of Taiwan into those of the mainland (滑鼠 → 鼠标)."""

    def problem(self, language: str) -> str | None:
        """Only Chinese has two sets of characters; Japanese would be falsified."""
        return None if language == "zh" else f"it is for Chinese, not for {language!r}"

    def repairing(self, language: str) -> Callable[[str], str]:
        """The repair of Chinese texts."""
        convert = _converter(self.configuration)

        def repair(text: str) -> str:
            return text if text.isascii() else str(convert(text))

        return repair


@cache
def _converter(configuration: str) -> Any:
    import opencc

    return opencc.OpenCC(configuration).convert
