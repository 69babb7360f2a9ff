"""Who speaks: the turns of a dialogue (Wu et al. 2020, TOD-BERT §3.2)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from pydantic import Field as Option

from pipelines.errors import DataError
from pipelines.parts.annotations import Annotation
from pipelines.task_families.dialogues import ROLES
from pipelines.vocabulary import Channel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipelines.task_families.tokenized import TokenizedText

NAME = "speakers"


class Speakers(Annotation, name=NAME):
    """The speaker of each token: the number, from 1, of the last mark before it, the mark itself included; 0 before the
    first mark.

    A mark is a single token. DataError, naming the row, for a text whose marks the tokenizer cuts: its vocabulary lacks
    them.
    """

    paper = "arXiv:2004.06871"
    makes: ClassVar[str] = NAME

    roles: tuple[str, ...] = Option(ROLES, min_length=2)
    """Marks of the speakers, as they are written in the text."""

    @property
    def channels(self) -> tuple[Channel, ...]:
        return (Channel(NAME, size=1 + len(self.roles), edges=(0, 0)),)

    def annotate(self, text: TokenizedText) -> Mapping[str, NDArray[Any]]:
        number = {role: index for index, role in enumerate(self.roles, 1)}
        if not isinstance(text.text, str):
            # of a text that was tokenized word by word, marks are words
            assert text.words is not None
            marked = np.asarray([number.get(word, 0) for word in text.text], dtype=np.int64)
            last = np.maximum.accumulate(np.where(marked > 0, np.arange(len(marked)), 0))
            return {NAME: marked[last][text.words]}
        marks = list(re.finditer("|".join(map(re.escape, self.roles)), text.text))
        begins = np.asarray([mark.start() for mark in marks], dtype=np.int64)
        ends = np.asarray([mark.end() for mark in marks], dtype=np.int64)
        # the mark that a token has a character of, if any; marks that a row has no room for have no token at all
        inside = np.searchsorted(ends, text.spans[:, 0], side="right")
        touched = [
            (marks[mark], tuple(span))
            for mark, span in zip(inside.tolist(), text.spans.tolist(), strict=True)
            if mark < len(marks) and span[1] > marks[mark].start()
        ]
        if cut := next((mark for mark, span in touched if mark.span() != span), None):
            raise DataError(
                f"{text.where}: the mark {cut[0]!r} of a speaker is no token of the vocabulary; use a tokenizer that "
                "has it (dialogue_wordpiece), or start from a checkpoint that does"
            )
        speaker = np.asarray([0, *(number[mark[0]] for mark in marks)], dtype=np.int64)
        return {NAME: speaker[np.searchsorted(begins, text.spans[:, 0], side="right")]}
