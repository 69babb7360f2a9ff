"""Plain text (.txt): documents separated by blank lines, as in BERT's pre-training script, or one per line."""

from __future__ import annotations

from pipelines.corpora.reading.flaws import Flaw, FlawHandler
from pipelines.corpora.reading.lines import lines
from pipelines.corpora.reading.options import ReadOptions, Records
from pipelines.corpora.reading.parts import Part


def read_text(part: Part, options: ReadOptions, on_flaw: FlawHandler) -> Records:
    """Read the documents of a part into the first of the columns. Flaws: those of `lines`, overlong document."""
    return _lines(part, options, on_flaw) if options.lines else _blocks(part, options, on_flaw)


def _lines(part: Part, options: ReadOptions, on_flaw: FlawHandler) -> Records:
    for location, line in lines(part, options, on_flaw):
        if stripped := line.strip():
            yield part.name + location, {options.columns[0]: stripped}


def _blocks(part: Part, options: ReadOptions, on_flaw: FlawHandler) -> Records:
    """Documents between blank lines. A document with a bad line is dropped whole, since its rest would pass for a
    document."""
    block: list[str] = []
    first, size, is_damaged = "", 0, False

    def on_line_flaw(flaw: Flaw) -> None:
        nonlocal is_damaged
        if not is_damaged or not flaw.location:  # a document is counted once, however many bad lines it has
            on_flaw(flaw)
        is_damaged = True

    for location, line in lines(part, options, on_line_flaw):
        if line.strip():
            first = first if size else location
            size += len(line)
            if size <= options.longest:
                block.append(line)
            else:
                block.clear()
        else:
            yield from _finished(part, options, on_flaw, block, first, size, is_damaged)
            block, size, is_damaged = [], 0, False
    yield from _finished(part, options, on_flaw, block, first, size, is_damaged)


def _finished(
    part: Part, options: ReadOptions, on_flaw: FlawHandler, block: list[str], first: str, size: int, is_damaged: bool
) -> Records:
    if is_damaged or not size:
        return
    if size > options.longest:
        message = (
            f"the document that begins here has {size:,} characters, more than longest_document allows "
            f"({options.longest:,}); put blank lines between documents, set 'format: lines' for one text per line, "
            "or raise the limit"
        )
        on_flaw(Flaw("overlong document", part.name, part.path, first, message))
        return
    yield part.name + first, {options.columns[0]: "".join(block)}
