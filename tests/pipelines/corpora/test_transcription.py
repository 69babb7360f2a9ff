"""English in Georgian letters: a second language without downloads."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from pipelines.corpora.documentation import docstrings
from pipelines.corpora.documentation.documented_tasks import documented_examples
from pipelines.corpora.documentation.transcription import LONGEST, SHORTEST, transcribed, translations
from pipelines.corpora.settings.dataset import load_dataset
from pipelines.corpora.settings.sources import DocumentationSource
from pipelines.corpora.settings.task import DocumentationTask
from pipelines.corpora.steps import sources
from pipelines.errors import RecipeError

TEXT = """\
Return the sum of the values of an array over an axis.

Too short.

>>> an example of code that is as long as a paragraph may be

A second paragraph, which is
on two lines, of 2 sentences."""


def test_every_letter_has_one_of_its_own_and_nothing_else_changes() -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    assert len(set(transcribed(letters))) == 26 and not set(transcribed(letters)) & set(letters)
    assert transcribed(letters.upper()) == transcribed(letters)
    assert transcribed("Sum, 2\u00b72 \u00fc!") == "\u10e2\u10e4\u10dc, 2\u00b72 \u00fc!"


def test_short_paragraphs_have_translations() -> None:
    first, second = translations(TEXT)
    assert first[0] == "Return the sum of the values of an array over an axis."
    assert second[0] == "A second paragraph, which is on two lines, of 2 sentences."
    assert all(translation == transcribed(text) for text, translation in (first, second))
    lengths = {number: len(list(translations("x" * number))) for number in (SHORTEST - 1, SHORTEST, LONGEST + 1)}
    assert lengths == {SHORTEST - 1: 0, SHORTEST: 1, LONGEST + 1: 0}


def test_sources_have_these_forms(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(f'"""{TEXT}"""\n', encoding="utf-8")
    # the installation is this one file
    monkeypatch.setattr(docstrings, "python_files", lambda packages: {"m.py": tmp_path / "m.py"})

    def rows(form: str) -> list[object]:
        source = DocumentationSource.model_validate({"documentation": "domain", "form": form})
        return list(sources.documented(source))

    assert rows("transcribed") == [(transcribed(TEXT), "m.py:module", {})]
    assert rows("translations") == [
        (text, f"m.py:module#{number}", {"translation": translation})
        for number, (text, translation) in enumerate(translations(TEXT), 1)
    ]


def test_only_what_is_tested_is_in_the_other_language(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(f"text {part} " * 20, "abc"[at % 3], f"m{at}", part) for at, part in enumerate(["train", "test"] * 3)]
    monkeypatch.setattr("pipelines.corpora.documentation.documented_tasks.task_rows", lambda task: iter(rows))
    found = list(documented_examples(DocumentationTask(documentation="scipy", tested_form="transcribed")))
    texts = Counter((part, example["text"].isascii()) for example, _, part in found)
    assert texts == {("train", True): 3, ("test", False): 3}
    assert [example["label"] for example, _, _ in found] == [label for _, label, _, _ in rows]
    plain = list(documented_examples(DocumentationTask(documentation="scipy")))
    assert [example["text"] for example, _, _ in plain] == [text for text, *_ in rows]
    assert "tested_form" not in DocumentationTask(documentation="scipy").model_dump()


@pytest.mark.parametrize(
    ("task", "says"),
    [
        ("{documentation: scipy, family: tagging, tested_form: transcribed}", "tagging needs more than a text and its"),
        ("{documentation: scipy, tested_form: pages}", "Input should be 'texts' or 'transcribed'"),
    ],
)
def test_a_task_that_cannot_be_transcribed_is_refused(tmp_path: Path, task: str, says: str) -> None:
    (tmp_path / "params.yaml").write_text(f"datasets:\n  mine:\n    general: g\n    domain: d\n    task: {task}\n")
    with pytest.raises(RecipeError, match=r"params\.yaml:5: datasets\.mine\.task") as refused:
        load_dataset("mine", tmp_path)
    assert says in str(refused.value)
