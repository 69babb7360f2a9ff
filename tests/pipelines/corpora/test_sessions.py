"""Sessions at Python's prompt as dialogues, and the tasks that are made of them."""

from __future__ import annotations

from collections import Counter

import pytest

from pipelines.corpora.documentation.dialogue_tasks import CHOICES, response_examples, session_rows
from pipelines.corpora.documentation.sessions import sessions, turns_of
from pipelines.corpora.settings.task import DocumentationTask
from pipelines.task_families import TaskFamily
from pipelines.task_families.dialogues import SYSTEM, USER
from tests.pipelines.corpora.test_documented_tasks import rows as documented_rows

TEXT = """\
Add numbers.

Examples
--------
>>> a = 1
>>> a + 1
2
>>> [a,  # doctest: +SKIP
...  a]
[1,
 1]

Prose that is no output.

>>> a  # may vary
1
>>> b = 2
"""


def test_a_session_by_hand() -> None:
    assert turns_of(TEXT) == [
        (USER, "a = 1 a + 1"), (SYSTEM, "2"), (USER, "[a, a]"), (SYSTEM, "[1, 1]"), (USER, "a"), (SYSTEM, "1")
    ]  # fmt: skip
    assert list(sessions(TEXT)) == ["[USR] a = 1 a + 1 [SYS] 2 [USR] [a, a] [SYS] [1, 1] [USR] a [SYS] 1"]
    assert list(sessions("No session.")) == list(sessions(">>> 1 + 1\n2")) == []


def test_responses_and_intents_of_real_sessions() -> None:
    rows = documented_rows()
    found = list(response_examples(rows))
    family = TaskFamily.model_validate("multiple_choice")
    assert len(found) > 100 and [problem for one, _, _ in found if (problem := family.problem(one))] == []
    assert set(Counter(one["answer"] for one, _, _ in found)) == set(range(CHOICES))
    assert all(len(set(one["choices"])) == CHOICES and one["context"].startswith(USER) for one, _, _ in found)
    assert list(response_examples(rows)) == found
    assert {part for _, _, part in found} == {"train", "validation", "test"}
    labelled = list(session_rows(rows))
    assert len(labelled) >= len(found) and all(SYSTEM in text for text, _, _, _ in labelled)


def test_sessions_are_texts_or_choices() -> None:
    with pytest.raises(ValueError, match="texts: tagging needs more than a text and its label"):
        DocumentationTask.model_validate({"documentation": "scipy", "texts": "sessions", "family": "tagging"})
    with pytest.raises(ValueError, match="texts: multiple_choice needs more than a text and its label"):
        DocumentationTask.model_validate({"documentation": "scipy", "texts": "summaries", "family": "multiple_choice"})
