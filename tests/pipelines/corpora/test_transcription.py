"""English in Georgian letters: a second language without downloads."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from pipelines.corpora.documentation import docstrings
from pipelines.corpora.documentation.documented_tasks import documented_examples
from pipelines.corpora.documentation.transcription import (
    LONGEST,
    SHORTEST,
    aligned_translations,
    transcribed,
    translations,
)
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


def test_aligned_translations_have_a_word_for_every_word() -> None:
    two = f"{TEXT}\n\nReturn x, the first of the values (an array), or else the last of them, which is no array."
    (text, translation, alignment), *others = aligned_translations(two)
    assert not others, "of the longest of three paragraphs"
    assert text == "Return x , the first of the values ( an array ) , or else the last of them , which is no array ."
    assert not list(aligned_translations("Too short."))
    assert translation == transcribed(text) and len(translation.split()) == len(text.split())
    assert alignment == " ".join(f"{at}-{at}" for at in range(len(text.split())))


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
    assert rows("aligned") == [
        (text, f"m.py:module#{number}", {"translation": translation, "alignment": alignment})
        for number, (text, translation, alignment) in enumerate(aligned_translations(TEXT), 1)
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


PARAMETERS = """\
Do it to an array.

Parameters
----------
x : array_like
    The array.
"""
CODE = PARAMETERS + "\nExamples\n--------\n>>> y = f(x, 2)\n"


@pytest.mark.parametrize(
    ("family", "text", "words"),
    [("tagging", PARAMETERS, ("tokens", "tags")), ("dependency_parsing", CODE, ("words", "heads"))],
)
def test_words_are_transcribed_and_what_is_said_of_them_is_not(
    family: str, text: str, words: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [(text, "a", part, part) for part in ("train", "validation", "test")]
    monkeypatch.setattr("pipelines.corpora.documentation.documented_tasks.task_rows", lambda task: iter(rows))
    task = {"documentation": "scipy", "family": family}
    plain = [one for one, *_ in documented_examples(DocumentationTask.model_validate(task))]
    transcribed_test = [
        one for one, *_ in documented_examples(DocumentationTask.model_validate({**task, "tested_form": "transcribed"}))
    ]
    assert len(plain) == 3 and transcribed_test[:2] == plain[:2]
    before, after = plain[2], transcribed_test[2]
    given, answers = words
    assert after[given] == [transcribed(word) for word in before[given]] != before[given]
    assert after[answers] == before[answers]
    assert all(isinstance(value, type(before[name])) for name, value in after.items())


@pytest.mark.parametrize(
    ("task", "says"),
    [
        (
            "{documentation: scipy, family: multiple_choice, tested_form: transcribed}",
            "multiple_choice needs more than words and their labels (answer, choices, context, question)",
        ),
        ("{documentation: scipy, tested_form: pages}", "Input should be 'texts' or 'transcribed'"),
    ],
)
def test_a_task_that_cannot_be_transcribed_is_refused(tmp_path: Path, task: str, says: str) -> None:
    (tmp_path / "params.yaml").write_text(f"datasets:\n  mine:\n    general: g\n    domain: d\n    task: {task}\n")
    with pytest.raises(RecipeError, match=r"params\.yaml:5: datasets\.mine\.task") as refused:
        load_dataset("mine", tmp_path)
    assert says in str(refused.value)
