"""Alternating mixing: a fixed pattern of lines, repeated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pipelines.components import did_you_mean
from pipelines.parts.mixing import Mixing

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Alternating(Mixing, name="alternating"):
    """One step of each line in turn, however large its data, or the given `pattern` again and again (Lample & Conneau
    2019, §3.4: steps of masked and of translation language modelling alternate)."""

    paper = "arXiv:1901.07291"

    pattern: tuple[str, ...] = ()
    """Names of lines in the order of steps, for example [mlm, mlm, tlm]; empty: every line once."""

    def conflict(self, lines: Sequence[str], *, in_epochs: bool) -> str | None:
        for name in self.pattern:
            if name not in lines:
                return f"pattern: there is no line {name!r}.{did_you_mean(name, lines)}"
        if self.pattern and (left := sorted(set(lines) - set(self.pattern))):
            return f"pattern: never trains {', '.join(left)}; name every line, or remove the line"
        return None

    def order(self, lines: Sequence[str], sizes: Sequence[int], steps: int, seed: int) -> NDArray[np.int64]:
        pattern = [lines.index(name) for name in self.pattern] or range(len(lines))
        return np.resize(np.asarray(pattern, dtype=np.int64), steps)
