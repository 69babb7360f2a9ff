"""Parse documentation strings in NumPy's style: summary, description, parameters.

Summary line.                        summary
                                     ┐
Longer description.                  │ description: everything after the summary except lists
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
class DocumentedParameter:
    """One entry of a section of parameters; several names may share it."""

    names: tuple[str, ...]
    type: str
    description: str

    @property
    def first_sentence(self) -> str:
        """The beginning of the description, up to a full stop, colon or semicolon."""
        return re.split(r"(?<=[.;:]) ", self.description, maxsplit=1)[0]


@dataclass(frozen=True)
class ParsedDocstring:
    """A parsed documentation string; missing parts are empty."""

    summary: str
    description: str
    """Description and notes, without the summary and the sections that list names."""
    parameters: tuple[DocumentedParameter, ...]


_LISTS = frozenset(
    {"Parameters", "Other Parameters", "Returns", "Yields", "Raises", "See Also", "Attributes", "Methods"}
)
_OMITTED = _LISTS | {"References", "Examples"}


def parse_docstring(text: str) -> ParsedDocstring:
    """Parse `text`. The summary is its first paragraph on one line."""
    headings = list(_HEADING.finditer(text))
    introduction = text[: headings[0].start()] if headings else text
    first, _, rest = introduction.strip().partition("\n\n")
    descriptions = [rest.strip()]
    parameters: list[DocumentedParameter] = []
    for number, heading in enumerate(headings):
        end = headings[number + 1].start() if number + 1 < len(headings) else len(text)
        content = text[heading.end() : end].strip("\n")
        name = heading["name"].strip()
        if name == "Parameters":
            parameters += _parameters(content)
        elif name not in _OMITTED:
            descriptions.append(content.strip())
    return ParsedDocstring(
        " ".join(first.split()), "\n\n".join(part for part in descriptions if part), tuple(parameters)
    )


def _parameters(section: str) -> list[DocumentedParameter]:
    """The entries of a section; a line that is neither an entry nor indented ends the one before it."""
    entries: list[tuple[re.Match[str], list[str]]] = []
    for line in section.split("\n"):
        entry = _PARAMETER.match(line)
        if entry:
            entries.append((entry, []))
        elif entries and (line[:1].isspace() or not line):
            entries[-1][1].append(line.strip())
    return [
        DocumentedParameter(
            tuple(name.strip() for name in entry["names"].split(",")),
            entry["type"].strip(),
            " ".join(" ".join(lines).split()),
        )
        for entry, lines in entries
    ]
