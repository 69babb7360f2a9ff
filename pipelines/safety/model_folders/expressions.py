"""Regular expressions of a tokenizer, refused where their effort is not bounded by the square of a text's length.

A backtracking engine takes exponential time where a repeated group can match the same text in several ways, and a power
of the length for each repetition that another one may hand characters to before something fails. The expressions of
tokenizers in use need neither: they are alternatives of a few character classes. So the syntax is restricted to that,
which is decided without running the expression.

    [^\\r\\n\\p{L}\\p{N}]?\\p{L}+ | \\p{N}{1,3} | \\s*[\\r\\n]+ | \\s+(?!\\S)      accepted
    (a+)+b     (a|aa)*b     .*.*.*b     (a*)\\1                                  refused
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pipelines.safety.model_folders.rejection import UnsafeFolderError

LONGEST = 4096
"""Maximum characters of an expression."""
SHORT = 32
"""Number of repetitions up to which a counted one, such as {1,3}, counts as bounded."""
DEEPEST = 16
MOST_CHOICES = 4096
"""Maximum number of ways through one alternative, its unbounded repetitions apart."""
_GROUP = re.compile(r"\?(?:[imsx-]*[:)]|=|!|<=|<!|>|<[A-Za-z_]\w*>|P<[A-Za-z_]\w*>)")
_COUNTED = re.compile(r"\{(\d*)(,?)(\d*)\}")
_ESCAPE = re.compile(
    r"\\(?:[pP]\{\^?[\w =&-]+\}|x\{[0-9A-Fa-f]+\}|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|[^0-9gkKXO])", re.DOTALL
)


class _Unbounded(Exception):
    """What is wrong with an expression."""


@dataclass
class _Shape:
    """What has been read of a group: how its repetitions can take characters from each other."""

    long_repeats: int = 0
    """Maximum number of unbounded repetitions in sequence, over its alternatives."""
    fails_after: bool = False
    """Whether something that can fail follows two of them."""
    repeats: bool = False
    """Whether it contains a repetition or an alternation."""
    optional: bool = False
    """Whether it can match nothing."""
    choices: int = 1
    """Number of ways through it, its unbounded repetitions apart."""


def check_expression(where: str, expression: str) -> None:
    """Raise UnsafeFolderError for an `expression` whose effort may not be bounded; `where` begins the message."""
    reason = unbounded(expression)
    if reason is not None:
        text = expression if len(expression) <= 80 else f"{expression[:79]}…"
        raise UnsafeFolderError(f"{where}: the regular expression {text!r} may never end: {reason}")


def unbounded(expression: str) -> str | None:
    """Why the effort of `expression` may not be bounded; None if it is."""
    if len(expression) > LONGEST:
        return f"it has {len(expression):,} characters, and at most {LONGEST:,} are read"
    try:
        end, _ = _alternatives(expression, 0, 0)
    except _Unbounded as found:
        return str(found)
    return None if end == len(expression) else f"its parentheses do not match at character {end + 1}"


def _alternatives(text: str, at: int, depth: int) -> tuple[int, _Shape]:
    """Read alternatives up to the end of their group."""
    if depth > DEEPEST:
        raise _Unbounded(f"its groups are nested more than {DEEPEST} deep")
    whole = _Shape(choices=0)
    while True:
        at, one = _sequence(text, at, depth)
        whole.choices += one.choices
        whole.long_repeats = max(whole.long_repeats, one.long_repeats)
        whole.fails_after |= one.fails_after
        whole.repeats |= one.repeats
        whole.optional |= one.optional
        if at >= len(text) or text[at] != "|":
            return at, whole
        whole.repeats = True
        at += 1


def _sequence(text: str, at: int, depth: int) -> tuple[int, _Shape]:
    """Read one alternative."""
    whole = _Shape(optional=True)
    while at < len(text) and text[at] not in "|)":
        at, item = _item(text, at, depth)
        at, least, most = _repetition(text, at)
        if most > 1 and item.repeats:
            raise _Unbounded("a repeated group contains a repetition or an alternation")
        optional = least == 0 or item.optional
        if whole.long_repeats >= 2 and not optional:
            whole.fails_after = True
        if most > SHORT:
            item.long_repeats += 1
        whole.long_repeats += item.long_repeats
        if whole.fails_after or whole.long_repeats > 2 or item.fails_after:
            raise _Unbounded("several repetitions in a row can take characters from each other")
        whole.repeats |= item.repeats or most > 1 or least < most
        whole.optional &= optional
        whole.choices *= item.choices**most if most <= SHORT else item.choices
        whole.choices *= most - least + 1 if most <= SHORT else 1
        if whole.choices > MOST_CHOICES:
            raise _Unbounded(f"there are more than {MOST_CHOICES:,} ways through one of its alternatives")
    return at, whole


def _item(text: str, at: int, depth: int) -> tuple[int, _Shape]:
    """Read a character, a class or a group."""
    char = text[at]
    if char == "(":
        kind = _GROUP.match(text, at + 1) if text[at + 1 : at + 2] in ("?", "*") else None
        if kind is None and text[at + 1 : at + 2] in ("?", "*"):
            raise _Unbounded(f"{text[at : at + 4]!r} is none of the groups that tokenizers use")
        inside = at + 1 if kind is None else kind.end()
        if kind is not None and kind[0].endswith(")"):  # only switches an option
            return inside, _Shape(optional=True)
        end, shape = _alternatives(text, inside, depth + 1)
        if text[end : end + 1] != ")":
            raise _Unbounded("a group is not closed")
        if kind is not None and kind[0] in ("?=", "?!", "?<=", "?<!"):
            shape.optional = False  # takes no characters, and can fail
        return end + 1, shape
    if char == "[":
        return _class(text, at), _Shape()
    if char == "\\":
        escape = _ESCAPE.match(text, at)
        if escape is None:
            raise _Unbounded(f"{text[at : at + 3]!r} refers to a group, or is no escape that tokenizers use")
        return escape.end(), _Shape(optional=escape[0] in ("\\b", "\\B", "\\A", "\\z", "\\Z", "\\G"))
    if char in "*+?":
        raise _Unbounded(f"{char!r} repeats nothing")
    return at + 1, _Shape()


def _class(text: str, at: int) -> int:
    """The end of the character class at `at`, which may contain classes."""
    depth, position = 0, at
    while position < len(text):
        char = text[position]
        if char == "\\":
            position += 1
        elif char == "[":
            depth += 1
            if text[position + 1 : position + 2] == "^":
                position += 1
            if text[position + 1 : position + 2] == "]":  # the first one is a character
                position += 1
        elif char == "]":
            depth -= 1
            if depth == 0:
                return position + 1
        position += 1
    raise _Unbounded("a character class is not closed")


def _repetition(text: str, at: int) -> tuple[int, int, int]:
    """The end of the repetition at `at`, and how often it repeats, at least and at most; once where there is none."""
    least = most = 1
    first = True
    while at < len(text):
        counted = _COUNTED.match(text, at)
        if text[at] in "*+?":
            own = {"*": (0, SHORT + 1), "+": (1, SHORT + 1), "?": (0, 1)}[text[at]]
            end = at + 1
        elif counted and counted[0] not in ("{}", "{,}"):
            begin = int(counted[1] or 0)
            own = (begin, begin if not counted[2] else int(counted[3]) if counted[3] else SHORT + 1)
            end = counted.end()
        else:
            break
        if not first and text[at] not in "?+":
            raise _Unbounded("a repetition is repeated")
        if first:
            least, most = own
        at, first = end, False
    return at, least, most
