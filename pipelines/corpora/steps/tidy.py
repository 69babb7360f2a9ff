"""What no text may hold, whatever the settings: characters nobody sees or no file can hold, and space at the ends."""

from __future__ import annotations

import re
from collections.abc import Callable

_NEW_LINES = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_CONTROL = "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f"
_HIDDEN = "\u00ad\u034f\u061c\u180e\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff0-\ufffb\ufffe\uffff\ufdd0-\ufdef"
"""Soft hyphens, marks of direction, word joiners, the byte order mark, what is no character."""
_LONE_HALVES = "\ud800-\udfff"
"""Halves of a surrogate pair: UTF-8 cannot spell them."""
_TAGS = r"(?<![\U0001F3F4\U000E0020-\U000E007E])[\U000E0000-\U000E007F]"
"""Tags but for those that make a flag of 🏴."""
_JOINABLE = (
    "\u0600-\u08ff\u0900-\u0dff\u0f00-\u109f\u1780-\u18af\ua8e0-\ua8ff\ufb50-\ufdcf\ufdf0-\ufdff\ufe70-\ufefc"
    "\u00a9\u00ae\u200d\u2190-\u2bff\u3030\u303d\u3297\u3299\ufe0f\U0001f000-\U0001faff"
)
"""Arabic, Indic, Tibetan, Burmese, Khmer and Mongolian script, and pictures: what (non-)joiners have a meaning behind."""
_JOINERS = f"(?<![{_JOINABLE.replace(chr(0x200D), '')}])[\u200c\u200d]"
_WORD_BREAK = "\u200b"
"""Zero-width space: where words of languages without spaces may be known by it alone."""
_WITH_WORD_BREAKS = frozenset({"th", "lo", "km", "my", "bo"})
_RARE = re.compile("[\u200c\u200d\U000e0000-\U000e007f]")
_SPACES = " \t\u00a0\u3000"
_TRAILING = re.compile(f"[{_SPACES}]+(?=\n)")
_BLANK_LINES = re.compile(r"\n{3,}")


def visible(language: str) -> Callable[[str], str]:
    """Texts of a language with `\\n` for every line end, without control characters and characters of no width.

    Joiners and non-joiners stay where they have a meaning: behind letters of Arabic and Indic scripts, and in emoji. The
    zero-width space stays in Thai, Lao, Khmer, Burmese and Tibetan, where it parts words.
    """
    breaks = "" if language in _WITH_WORD_BREAKS else _WORD_BREAK
    unseen = re.compile(f"[{_CONTROL}{_HIDDEN}{_LONE_HALVES}{breaks}]")
    pairs = re.compile(f"{_JOINERS}|{_TAGS}")
    # one cheap look at every character, since most texts have none of these
    worth_a_look = re.compile(
        f"[\r\x0b\x0c\x85\u2028\u2029{_CONTROL}{_HIDDEN}{_LONE_HALVES}{breaks}{_RARE.pattern[1:]}"
    )

    def repair(text: str) -> str:
        if not worth_a_look.search(text):
            return text
        text = unseen.sub("", _NEW_LINES.sub("\n", text))
        # what is behind a joiner is known only now that nothing unseen stands between
        return pairs.sub("", text) if _RARE.search(text) else text

    return repair


def trimmed(text: str) -> str:
    """The text without space at the ends of its lines and its own, and with one blank line where there were more."""
    if any(f"{space}\n" in text for space in _SPACES):
        text = _TRAILING.sub("", text)
    if "\n\n\n" in text:
        text = _BLANK_LINES.sub("\n\n", text)
    return text.strip()
