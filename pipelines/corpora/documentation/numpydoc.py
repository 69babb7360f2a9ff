"""Documentation strings in NumPy's style, taken apart: summary, description, sections, parameters.

Summary line.                        summary
                                     ┐
Longer description.                  │ body: everything behind the summary, without the parameters
                                     ┘
Parameters
----------
x, y : array_like                    parameter: names, type, description
    What they are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_HEADING = re.compile(r"^(?P<name>[A-Z][\w ]+)\n(?P<line>-{3,}|={3,}) *$", re.MULTILINE)
_PARAMETER = re.compile(r"^(?P<names>[*\w]+(?:, *[*\w]+)*) : *(?P<type>\S.*)$")


@dataclass(frozen=True)
class Parameter:
    """One entry of a section of parameters; several names may share it."""

    names: tuple[str, ...]
    type: str
    description: str


@dataclass(frozen=True)
class Documented:
    """A documentation string in its parts; what is missing is empty."""

    summary: str
    body: str
    """Description and notes, without the summary and the sections that list names."""
    parameters: tuple[Parameter, ...]


_LISTS = frozenset(
    {"Parameters", "Other Parameters", "Returns", "Yields", "Raises", "See Also", "Attributes", "Methods"}
)
_LEFT_OUT = _LISTS | {"References", "Examples"}


def documented(text: str) -> Documented:
    """`text` taken apart. The summary is its first paragraph on one line."""
    headings = list(_HEADING.finditer(text))
    introduction = text[: headings[0].start()] if headings else text
    first, _, rest = introduction.strip().partition("\n\n")
    bodies = [rest.strip()]
    parameters: list[Parameter] = []
    for number, heading in enumerate(headings):
        end = headings[number + 1].start() if number + 1 < len(headings) else len(text)
        content = text[heading.end() : end].strip("\n")
        name = heading["name"].strip()
        if name == "Parameters":
            parameters += _parameters(content)
        elif name not in _LEFT_OUT:
            bodies.append(content.strip())
    return Documented(" ".join(first.split()), "\n\n".join(part for part in bodies if part), tuple(parameters))


def _parameters(section: str) -> list[Parameter]:
    """The entries of a section; a line that is neither an entry nor indented ends the one before it."""
    found: list[tuple[re.Match[str], list[str]]] = []
    for line in section.split("\n"):
        entry = _PARAMETER.match(line)
        if entry:
            found.append((entry, []))
        elif found and (line[:1].isspace() or not line):
            found[-1][1].append(line.strip())
    return [
        Parameter(
            tuple(name.strip() for name in entry["names"].split(",")),
            entry["type"].strip(),
            " ".join(" ".join(lines).split()),
        )
        for entry, lines in found
    ]
