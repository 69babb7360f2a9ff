"""markup: remains of HTML in a text."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from html.entities import html5

from pipelines.corpora.cleaning import Repair

_BLOCKS = frozenset(
    re.findall(
        r"\S+",
        "address article aside blockquote body br caption center dd div dl dt fieldset figcaption figure footer form "
        "h1 h2 h3 "
        "h4 h5 h6 head header hr html li main nav ol option p pre section table tbody tfoot thead title tr ul",
    )
)
_CELLS = frozenset({"td", "th"})
_INLINE = frozenset(
    re.findall(
        r"\S+",
        "a abbr acronym audio b bdi bdo big button canvas cite code col colgroup data datalist del details dfn dialog "
        "em "
        "embed font frame frameset i iframe img input ins kbd label legend link map mark meta meter nobr noframes "
        "noscript "
        "object optgroup output param picture progress q rp rt ruby s samp script select slot small source span strike "
        "strong style sub summary sup svg template textarea time track tt u var video wbr",
    )
)
_ALONE = frozenset({"br", "hr", "wbr", "img", "p", "li"})
"""Void elements, or elements with an optional end tag, that are not used as names of arguments."""

_NAME = "|".join(sorted(_BLOCKS | _CELLS | _INLINE, reverse=True))
_ATTRIBUTE = r"""\s+[a-z_:@][\w:.@-]*(?:\s*=\s*(?:"[^"<>]*"|'[^'<>]*'|[^\s"'<>=`]+))"""
_TAG = re.compile(rf"<(/?)({_NAME})((?:{_ATTRIBUTE})*)\s*(/?)>", re.IGNORECASE)
_HIDDEN = re.compile(r"<(script|style)\b[^<>]*>.*?</\1\s*>", re.IGNORECASE | re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->|<!doctype\s[^<>]*>|<!\[CDATA\[|\]\]>", re.IGNORECASE | re.DOTALL)
_REFERENCE = re.compile(r"&(?:amp;)*(#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_CODE = re.compile(r"(```.*?```|`[^`\n]+`)", re.DOTALL)


class Markup(Repair, name="markup"):
    """Remove HTML tags, comments, scripts and character references; keep `a < b`, `List<String>` and `cmd <file>`.

    A tag is the name of an HTML element with well-formed attributes or none. One without attributes may be the name of
    an argument (`copy <input> <output>`): it is removed only if the text contains its end tag, or if its element needs
    none.
    """

    references: bool = True
    """Whether to decode character references (`&amp;`, `&#8217;`); `&copy=1` in an address is kept."""
    code: bool = False
    """Whether to repair Markdown code, too."""

    def make_repair(self, language: str) -> Callable[[str], str]:
        """A function that repairs texts of any language."""

        def repair(text: str) -> str:
            if "<" not in text and not (self.references and "&" in text):
                return text
            if self.code or "`" not in text:
                return self._repaired(text)
            # odd parts are code
            parts = _CODE.split(text)
            return "".join(part if index % 2 else self._repaired(part) for index, part in enumerate(parts))

        return repair

    def _repaired(self, text: str) -> str:
        # a removal may create another tag or reference; every round shortens the text, so this terminates
        while True:
            before = text
            if "<" in text:
                text = _without_tags(_COMMENT.sub("", _HIDDEN.sub("", text) if "</" in text else text))
            if self.references and "&" in text:
                text = _REFERENCE.sub(_character, text)
            if text == before:
                return text


def _without_tags(text: str) -> str:
    ended = {match[2].lower() for match in _TAG.finditer(text) if match[1]}

    def replacement(match: re.Match[str]) -> str:
        end, name, attributes, alone = match[1], match[2].lower(), match[3], match[4]
        if not (end or attributes or alone or name in _ALONE or name in ended):
            return match[0]
        if name in _BLOCKS:
            return "\n"
        return "\t" if name in _CELLS else ""

    return _TAG.sub(replacement, text)


def _character(match: re.Match[str]) -> str:
    name = match[1]
    return html.unescape(f"&{name};") if name[0] == "#" else html5.get(f"{name};", match[0])
