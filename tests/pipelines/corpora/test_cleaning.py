"""Repair, the same text once, and n-grams: each against cases small enough to read."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.corpora.duplicates.overlap import OverlapIndex, text_key, words
from pipelines.corpora.settings.cleaning import CleanSettings
from pipelines.corpora.shards.tables import example_of, row_of
from pipelines.corpora.shards.tally import Tally
from pipelines.corpora.steps.clean import Cleaning, cleaned_examples, make_repair, split_text
from pipelines.corpora.steps.deduplicate import unique_examples
from pipelines.task_families import TaskFamily
from tests.pipelines.corpora.small_dataset import documents

CLASSES = TaskFamily.default()


def repaired(text: str, language: str = "en", **fields: Any) -> str:
    return make_repair(CleanSettings(**fields), language)(text, Counter())


ENGLAND = "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
EVERYTHING = {"repairs": ["markup", "unicode", "simplified", {"name": "boilerplate", "repeated": 3}]}
PIECES = st.sampled_from(
    ["<b>", "</b>", "&amp;", "lt;", "&#8203;", "&", "<!--", "-->", "＜", "ｂ", "＞", "／"]
    + ["ﬁ", "…", "\u200d", "\u200c", "ن", "👨", "e", "\u0301", "\ufeff"]
    + ["\r\n", "\n", " \n", "\x00", "\u2028", "\u00a0", "\ud800", "乾", "淨", "© 2020", "Share", "`", "\U000e0067",
    "🏴"]
)  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("\ufeffCafe\u0301 \x00\r\nau lait\u00a0 \r\n\r\n\r\n\r\nfin\u200b ", "Café\nau lait\n\nfin"),
        ("one\x0cpage\u2028two\x85three\rfour", "one\npage\ntwo\nthree\nfour"),
        ("soft\u00adhyphen, \u202eright\u202c, half \ud83d", "softhyphen, right, half"),
        ("می\u200cخواهم क्\u200dष 👨\u200d👩\u200d👧", "می\u200cخواهم क्\u200dष 👨\u200d👩\u200d👧"),
        ("x\u200dy z\u200c", "xy z"),
        (f"{ENGLAND} a\U000e0067", f"{ENGLAND} a"),
    ],
)  # fmt: skip
def test_repair_composes_letters_and_drops_what_cannot_be_seen(before: str, after: str) -> None:
    assert repaired(before) == after


def test_words_of_thai_stay_apart() -> None:
    assert repaired("คำ\u200bใหม่", "th") == "คำ\u200bใหม่" and repaired("คำ\u200bใหม่", "en") == "คำใหม่"


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("fields", [{}, EVERYTHING], ids=["default", "all"])
@given(text=st.one_of(st.text(), st.lists(PIECES).map("".join)))
@settings(max_examples=150, deadline=None)
def test_a_repaired_text_needs_no_repair(fields: dict[str, Any], language: str, text: str) -> None:
    once = repaired(text, language, **fields)
    assert repaired(once, language, **fields) == once
    assert once == once.strip() == once.encode().decode()


@given(
    texts=st.lists(st.one_of(st.text(max_size=60), st.lists(PIECES, max_size=9).map("".join),
    st.sampled_from(documents("email")))),
    filters=st.lists(st.sampled_from(["c4", "gopher", "gopher_repetition", "language"]), unique=True),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_every_text_stays_or_is_counted_with_its_reason(texts: list[str], filters: list[str]) -> None:
    cleaning = Cleaning(CleanSettings(**EVERYTHING, filters=filters, masks=["email", "phone"]), "zh", Path("."))
    tally = Tally()
    rows = list(cleaning(iter([(text, str(number)) for number, text in enumerate(texts)]), tally))
    assert len({row[1] for row in rows}) + tally.dropped.total() == len(texts)
    assert {row[1] for row in rows} <= set(map(str, range(len(texts))))
    counts = tally.counts()
    assert set(counts["samples"]) == set(counts["dropped"])
    assert set(counts["dropped"]) <= {"empty", "too short"} | {
        reason for reason in counts["dropped"] if reason.partition(": ")[0] in filters
    }


def test_what_is_done_to_texts_is_counted_and_what_goes_is_shown() -> None:
    chosen = CleanSettings(repairs=["markup", "unicode"], filters=[{"name": "gopher", "min_words": 5}], masks=["email"])
    rows = [
        ("Write <b>to</b> me@example.org and to you@example.org, or be with the others.", "a:1", "a"),
        ("The end of it.", "a:2", "a"),
        ("Nothing is wrong with this one, and that is that.", "a:3", "a"),
    ]
    tally = Tally()
    kept = list(Cleaning(chosen, "en", Path("."))(iter(rows), tally))
    assert kept == [("Write to [EMAIL] and to [EMAIL], or be with the others.", "a:1", "a"), rows[2]]
    assert tally.counts() == {
        "dropped": {"gopher: too few words": 1},
        "changed": {"masked: email": 2, "repaired: markup": 1},
        "samples": {"gopher: too few words": [{"source": "a:2", "excerpt": "The end of it."}]},
    }


def test_no_filter_looks_at_examples_and_none_loses_lines() -> None:
    rows = [("Share on Facebook", "spam", "a:1", "test"), ("Mail me@example.org　{", "ham", "a:2", "test")]
    chosen = CleanSettings(repairs=["unicode", "boilerplate"], filters=["c4", "gopher", "language"], masks=["email"])
    tally = Tally()
    found = [row[:2] for row in cleaned_examples(rows, CLASSES, chosen, "en", tally)]
    assert found == [("Share on Facebook", "spam"), ("Mail [EMAIL] {", "ham")]
    assert tally.counts() == {"dropped": {}, "changed": {"masked: email": 1, "repaired: unicode": 1}, "samples": {}}


def test_pieces_keep_every_word_and_the_limit() -> None:
    text = "\n\n".join(documents("asyncio"))
    found = split_text(text, 500)
    assert max(map(len, found)) <= 500
    assert " ".join(found).split() == text.split()
    assert max(map(len, split_text("x" * 1201, 500))) <= 500


def test_short_and_empty_texts_go_but_labelled_ones_stay_whole_or_cut() -> None:
    tally = Tally()
    rows = [("word " * 100, "yes", "a:1", "train"), ("no", "no", "a:2", "train"), ("  ", "no", "a:3", "train")]
    limits = CleanSettings(min_characters=10, max_characters=100)
    assert [row[1] for row in cleaned_examples(rows, CLASSES, limits, "en", tally)] == ["yes", "no"]
    plain = iter([("too short", "b:1", "b"), ("word " * 100, "b:2", "b")])
    assert [row[1] for row in Cleaning(limits, "en", Path("."))(plain, tally)] == ["b:2"] * 5
    assert tally.dropped == {"empty": 1, "too short": 1}


def test_an_answer_is_found_again_after_repair_and_what_cannot_be_cut_goes() -> None:
    spans = TaskFamily.model_validate("span_extraction")
    context = "e\u0301te\u0301\x00 and Caf\u0065\u0301, Café \r\nagain"
    rows = [
        row_of(
            spans, {"context": context, "question": "?", "answer_texts": ["Café"], "answer_starts": [18]}, "a", "train"
        ),
        row_of(
            spans, {"context": "long " * 30, "question": "?", "answer_texts": [], "answer_starts": []}, "b", "train"
        ),
        row_of(
            spans,
            {"context": "a\u200b b", "question": "?", "answer_texts": ["\u200b"], "answer_starts": [1]},
            "c",
            "test",
        ),
    ]
    assert context[18:22] == "Café"
    tally = Tally()
    (kept,) = cleaned_examples(rows, spans, CleanSettings(max_characters=100), "en", tally)
    example = example_of(spans, kept)
    assert example["context"] == "été and Café, Café\nagain" and example["answer_starts"] == [14]
    assert spans.problem(example) is None and kept[0] == spans.text(example)
    assert tally.dropped == {"too long": 1, "no example after repair": 1}


def test_words_ignore_case_and_marks_and_count_every_han_character() -> None:
    assert words("The B-Spline's 汉字x 3.5") == ["the", "b", "spline", "s", "汉", "字", "x", "3", "5"]
    assert text_key("Hello, World!") == text_key("hello world")
    assert text_key("...") != text_key("!!!")


def test_what_evaluates_keeps_a_text_and_disagreeing_copies_go() -> None:
    rows = [
        ("Same text.", "a", "t:1", "train"),
        ("same  TEXT", "a", "e:1", "test"),
        ("unsure", "a", "t:2", "train"),
        ("unsure!", "b", "t:3", "train"),
        ("alone", "b", "t:4", "train"),
    ]
    tally = Tally()
    assert [row[2] for row in unique_examples(rows, CLASSES, tally)] == ["e:1", "t:4"]
    assert tally.dropped == {"train: same text in test": 1, "train: same text, other label": 2}


def test_where_answers_are_open_the_first_of_several_stays() -> None:
    rows = [("Wait!", "Wait!", "等等！", "t:1", "train"), ("wait", "wait", "等一下", "t:2", "train")]
    tally = Tally()
    kept = unique_examples(rows, TaskFamily.model_validate("text_generation"), tally)
    assert [row[-2] for row in kept] == ["t:1"] and tally.dropped == {"train: same text in train": 1}


def naive_overlap(text: str, evaluation: list[str], length: int) -> float:
    def grams(value: str) -> set[tuple[str, ...]]:
        found = words(value)
        return {tuple(found[start : start + length]) for start in range(len(found) - length + 1)}

    mine = grams(text)
    return max(
        (len(mine & theirs) / min(len(mine), len(theirs)) for theirs in map(grams, evaluation) if mine and theirs),
        default=0.0,
    )


def test_overlap_equals_its_definition_over_sets() -> None:
    evaluation = documents("email")[:30]
    index = OverlapIndex(evaluation, 5)
    texts = documents("email")[20:60] + [f"Before. {evaluation[3]} After." * 2, "", "too short"]
    assert [index.overlap(text) for text in texts] == pytest.approx([naive_overlap(t, evaluation, 5) for t in texts])
    assert index.overlap(evaluation[0]) == 1.0
    assert max(index.overlap(text) for text in documents("importlib")[:20]) < 0.5


def test_an_index_of_nothing_overlaps_nothing() -> None:
    assert OverlapIndex([], 5).overlap(documents("email")[0]) == 0.0
