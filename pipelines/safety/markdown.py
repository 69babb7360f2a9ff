"""Texts and labels of a dataset inside Markdown: shown as they are, never as links, images or HTML."""

from __future__ import annotations

import re

_MARKS = re.compile(r"[\\`*_\[\]|#~!]|(?<=\w):(?=//)|(?i:(?<=\bwww)\.)|@")
"""What begins code, emphasis, a link, an image, a cell of a table, a heading or a GitHub-flavoured autolink."""


def inert(text: object) -> str:
    """`text` on one line, with every character that Markdown gives a meaning escaped (CommonMark 0.31, §2.4)."""
    line = _MARKS.sub(r"\\\g<0>", " ".join(str(text).split()))
    return line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
