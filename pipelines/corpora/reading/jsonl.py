"""JSON Lines (.jsonl): one object per line."""

from __future__ import annotations

import json
from typing import Any

from pipelines.corpora.reading.flaws import Flaw, FlawHandler
from pipelines.corpora.reading.lines import lines
from pipelines.corpora.reading.options import ReadOptions, Records
from pipelines.corpora.reading.parts import Part


def read_jsonl(part: Part, options: ReadOptions, on_flaw: FlawHandler) -> Records:
    """Read the objects whose lines begin in a part. Flaws: those of `lines`, malformed JSON, missing columns."""
    for location, line in lines(part, options, on_flaw):
        if line.isspace():
            continue
        try:
            record = json.loads(line)
            if "\\ud" in line or "\\uD" in line:
                _encodable(record)
        except (ValueError, RecursionError) as error:
            message = f"not a JSON object: {error}; the line begins {line[:60]!r}"
            on_flaw(Flaw("malformed JSON", part.name, part.path, location, message, line))
            continue
        if not isinstance(record, dict):
            message = f"expected a JSON object, found {type(record).__name__}"
            on_flaw(Flaw("malformed JSON", part.name, part.path, location, message, line))
            continue
        missing = [column for column in options.columns if column not in record]
        if missing:
            message = f"there is no column {missing[0]!r}; the columns are {', '.join(map(repr, record))}"
            on_flaw(Flaw("missing column", part.name, part.path, location, message, line))
            continue
        yield part.name + location, record


def _encodable(value: Any) -> None:
    r"""ValueError for half a surrogate pair, `"\ud83d"`, which JSON can escape and UTF-8 cannot encode."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("an escape \\ud800–\\udfff without its other half") from None
