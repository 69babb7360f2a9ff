"""Tab-separated values (.tsv): one record per line, without quoting, so a field never contains a tab or a line end."""

from __future__ import annotations

from pipelines.corpora.reading.flaws import Flaw, FlawHandler
from pipelines.corpora.reading.lines import lines
from pipelines.corpora.reading.options import ReadOptions, Records
from pipelines.corpora.reading.parts import Part, whole_file


def read_tsv(part: Part, options: ReadOptions, on_flaw: FlawHandler) -> Records:
    """Read the records whose lines begin in a part. Without `header` in the options, the first line names the fields.

    Flaws: those of `lines`, missing column (for the file as a whole), wrong number of fields.
    """
    header = list(options.header) or _first_line(part, options, on_flaw)
    if not header:
        return
    missing = [column for column in options.columns if column not in header]
    if missing:
        if part.begin == 0:
            message = f"there is no column {missing[0]!r}; the columns are {', '.join(map(repr, header))}"
            on_flaw(Flaw("missing column", part.name, part.path, ":1", message))
        return
    has_header = not options.header and part.begin == 0
    for location, line in lines(part, options, on_flaw):
        if has_header:
            has_header = False
            continue
        if line.isspace() and "\t" not in line:
            continue
        fields = line.rstrip("\r\n").split("\t")
        if len(fields) != len(header):
            message = f"the line has {len(fields)} fields, expected {len(header)}: {', '.join(header)}"
            on_flaw(Flaw("wrong number of fields", part.name, part.path, location, message, line))
            continue
        yield part.name + location, dict(zip(header, fields, strict=True))


def _first_line(part: Part, options: ReadOptions, on_flaw: FlawHandler) -> list[str]:
    """Field names in the first line of a file; empty where it cannot be read, which the reader of the first part
    reports."""
    report = on_flaw if part.begin == 0 else lambda _: None
    for location, line in lines(whole_file(part.name, part.path), options, report):
        return line.rstrip("\r\n").split("\t") if location == ":1" else []
    return []
