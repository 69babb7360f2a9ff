"""Documentation as pages: each word, its box, and the entity that line and column give it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.corpora.documentation import docstrings
from pipelines.corpora.documentation.pages import FEWEST, LINES, Page, laid_out_words, pages
from pipelines.corpora.settings.dataset import load_dataset
from pipelines.corpora.settings.sources import PAGE_COLUMNS, DocumentationSource
from pipelines.corpora.steps import sources
from pipelines.errors import RecipeError
from pipelines.task_families import TaskFamily
from pipelines.task_families.writing_systems import join_words

TEXT = """\
Solve a thing
on two lines.

Parameters
----------
x, *args : array_like, shape (n,)
    What they are.

      >>> y : int
mode
    Indented.

Returns
-------
float
    The result, and more
A sentence of prose.

Note
----
No entry : here, only prose
    and an indented line."""


def test_a_page_by_hand() -> None:
    (page,) = pages(TEXT)
    kept = [(text, box, tag) for text, box, tag in zip(page.tokens, page.boxes, page.tags, strict=True) if tag != "O"]
    assert kept == [
        ("Parameters", [0, 3, 10, 4], "B-header"),
        # the rule below has gone, its line stays empty
        ("x,", [0, 5, 2, 6], "B-name"),
        ("*args", [3, 5, 8, 6], "I-name"),
        # so has the colon, and the type stays where it was
        ("array_like,", [11, 5, 22, 6], "B-type"),
        ("shape", [23, 5, 28, 6], "I-type"),
        ("(n,)", [29, 5, 33, 6], "I-type"),
        ("What", [4, 6, 8, 7], "B-description"),
        ("they", [9, 6, 13, 7], "I-description"),
        ("are.", [14, 6, 18, 7], "I-description"),
        # a blank line does not end a description
        (">>>", [6, 8, 9, 9], "I-description"),
        ("y", [10, 8, 11, 9], "I-description"),
        (":", [12, 8, 13, 9], "I-description"),
        ("int", [14, 8, 17, 9], "I-description"),
        ("mode", [0, 9, 4, 10], "B-name"),
        ("Indented.", [4, 10, 13, 11], "B-description"),
        ("Returns", [0, 12, 7, 13], "B-header"),
        ("float", [0, 14, 5, 15], "B-type"),
        ("The", [4, 15, 7, 16], "B-description"),
        ("result,", [8, 15, 15, 16], "I-description"),
        ("and", [16, 15, 19, 16], "I-description"),
        ("more", [20, 15, 24, 16], "I-description"),
        ("Note", [0, 18, 4, 19], "B-header"),
    ]
    assert page.size == [80, LINES]
    assert page.tokens[:6] == ["Solve", "a", "thing", "on", "two", "lines."] and page.boxes[3] == [0, 1, 2, 2]
    assert page.tokens[-10:] == ["No", "entry", ":", "here,", "only", "prose", "and", "an", "indented", "line."]
    family = TaskFamily.model_validate("layout_tagging")
    assert family.problem({"tokens": page.tokens, "boxes": page.boxes, "tags": page.tags, "page": page.size}) is None


def test_a_long_text_has_several_pages_and_an_entity_may_begin_again() -> None:
    described = "\n".join(f"    line {number} of the description" for number in range(LINES))
    first, second = pages(f"Parameters\n---\nx : int\n{described}")
    assert first.tags.count("B-description") == second.tags.count("B-description") == 1
    assert first.boxes[-1][3] == LINES and second.boxes[0] == [4, 0, 8, 1]
    assert len(second.words) == 3 * 5


def test_what_makes_no_page_is_left_out() -> None:
    assert not list(pages("word " * (FEWEST - 1))) and list(pages("word " * FEWEST))
    # normalised, this character is a space and an accent: the text would no longer be its words
    assert not list(pages("word " * FEWEST + "a\u00b4b"))
    (wide,) = pages("x" * 120 + " word" * FEWEST)
    assert wide.size == [120 + 5 * FEWEST, LINES]


def test_tabs_are_columns() -> None:
    assert [(word.text, word.column) for word in laid_out_words("\tx\ty")] == [("x", 8), ("y", 16)]


def test_a_corpus_of_pages_has_their_columns(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(f'"""{TEXT}"""\n')
    # the installation is this one file
    monkeypatch.setattr(docstrings, "python_files", lambda packages: {"m.py": tmp_path / "m.py"})
    source = DocumentationSource.model_validate({"documentation": "domain", "form": "pages"})
    ((text, where, values),) = sources.documented(source)
    page: Page = next(pages(TEXT))
    assert text == join_words(values["tokens"]) == page.text and where == "m.py:module#1"
    assert values.keys() == PAGE_COLUMNS.keys() and values["boxes"] == page.boxes
    plain = DocumentationSource.model_validate({"documentation": "domain"})
    assert list(sources.documented(plain)) == [(TEXT, "m.py:module", {})]
    assert "form" not in plain.model_dump() and source.model_dump()["form"] == "pages"


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("{documentation: general, columns: {page: list<int64>}}", "has texts only, no columns; others have some"),
        ("{documentation: general, form: pages, columns: {box: string}}", "has the columns {tokens: list<string>, "),
        ("{documentation: general, form: page}", "Input should be 'texts', 'pages'"),
    ],
)
def test_columns_that_documentation_does_not_have_are_refused(tmp_path: Path, source: str, says: str) -> None:
    (tmp_path / "params.yaml").write_text(
        "datasets:\n  mine:\n    general: g.txt\n    domain: d.txt\n    task: {train: a.jsonl, test: b.jsonl}\n"
        f"    corpora:\n      pages: {source}\n"
    )
    with pytest.raises(RecipeError) as refused:
        load_dataset("mine", tmp_path)
    assert str(refused.value).startswith("params.yaml:7: datasets.mine.corpora.pages") and says in str(refused.value)
