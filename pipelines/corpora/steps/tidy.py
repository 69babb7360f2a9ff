"""Repairs that always apply: invisible characters, characters that UTF-8 cannot encode, surrounding space."""

from __future__ import annotations

import re
from collections.abc import Callable

_NEW_LINES = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_CONTROL = "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f"
_HIDDEN = "\u00ad\u034f\u061c\u180e\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff0-\ufffb\ufffe\uffff\ufdd0-\ufdef"
"""Soft hyphens, directional marks, word joiners, the byte order mark, non-characters."""
_LONE_HALVES = "\ud800-\udfff"
"""Lone surrogates: UTF-8 cannot encode them."""
_TAGS = r"(?<![\U0001F3F4\U000E0020-\U000E007E])[\U000E0000-\U000E007F]"
"""Tag characters, except those that follow 🏴 to form a flag."""
_JOINABLE = (
    "\u0600-\u08ff\u0900-\u0dff\u0f00-\u109f\u1780-\u18af\ua8e0-\ua8ff\ufb50-\ufdcf\ufdf0-\ufdff\ufe70-\ufefc"
    "\u00a9\u00ae\u200d\u2190-\u2bff\u3030\u303d\u3297\u3299\ufe0f\U0001f000-\U0001faff"
)
"""Arabic, Indic, Tibetan, Burmese, Khmer and Mongolian script, and pictographs: (non-)joiners after them have a
meaning."""
_JOINERS = f"(?<![{_JOINABLE.replace(chr(0x200D), '')}])[\u200c\u200d]"
_WORD_BREAK = "\u200b"
"""Zero-width space: in languages without spaces it may be the only separator of words."""
_WITH_WORD_BREAKS = frozenset({"th", "lo", "km", "my", "bo"})
_RARE = re.compile("[\u200c\u200d\U000e0000-\U000e007f]")
_SPACES = " \t\u00a0\u3000"
_TRAILING = re.compile(f"[{_SPACES}]+(?=\n)")
_BLANK_LINES = re.compile(r"\n{3,}")


def visible(language: str) -> Callable[[str], str]:
    """Function that normalises line ends to `\\n` and removes control characters and zero-width characters.

    Joiners and non-joiners are kept where they have a meaning: after letters of Arabic and Indic scripts, and in emoji.
    The zero-width space is kept in Thai, Lao, Khmer, Burmese and Tibetan, where it separates words.
    """
    breaks = "" if language in _WITH_WORD_BREAKS else _WORD_BREAK
    unseen = re.compile(f"[{_CONTROL}{_HIDDEN}{_LONE_HALVES}{breaks}]")
    pairs = re.compile(f"{_JOINERS}|{_TAGS}")
    # one cheap search first, since most texts have none of these characters
    any_of_these = re.compile(
        f"[\r\x0b\x0c\x85\u2028\u2029{_CONTROL}{_HIDDEN}{_LONE_HALVES}{breaks}{_RARE.pattern[1:]}"
    )

    def repair(text: str) -> str:
        if not any_of_these.search(text):
            return text
        text = unseen.sub("", _NEW_LINES.sub("\n", text))
        # joiners come last: only now does no invisible character separate them from their context
        return pairs.sub("", text) if _RARE.search(text) else text

    return repair


def trimmed(text: str) -> str:
    """Strip spaces at line ends and around the text; collapse several blank lines into one."""
    if any(f"{space}\n" in text for space in _SPACES):
        text = _TRAILING.sub("", text)
    if "\n\n\n" in text:
        text = _BLANK_LINES.sub("\n\n", text)
    return text.strip()
