"""c4, gopher, gopher_repetition, language: each rule breaks on a text made for it, and prose stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipelines.corpora.cleaning import Cleaner, Filter
from pipelines.corpora.cleaning.c4 import C4
from pipelines.corpora.cleaning.gopher import Gopher
from pipelines.corpora.cleaning.gopher_repetition import GopherRepetition
from pipelines.corpora.cleaning.language import Language
from pipelines.errors import DataError
from tests.chinese_text import ARTICLES

PROSE = (
    "The harbour was quiet when the last of the boats came in, and nobody had lit the lamps. "
    "We walked along the wall to see what they would have to sell. There was little that we wanted to buy, "
    "but the old man with the red hat gave us bread. He said that the winter would be long and hard this year. "
    "Nobody could say how he knew, yet everyone believed him. So we stayed until the tide turned."
)
CHINESE = "\n".join(ARTICLES)


def judged(name: str, text: str, language: str = "en", **fields: Any) -> str | None:
    judge = Cleaner.model_validate({"name": name, **fields})
    assert isinstance(judge, Filter)
    stays, rule = judge.make_filter(language, Path("."))(text)
    assert rule is None or stays == text
    return rule


@pytest.mark.parametrize("name", ["c4", "gopher", "gopher_repetition", "language"])
def test_prose_stays(name: str) -> None:
    assert judged(name, PROSE) is None
    assert judged(name, CHINESE, "zh") is None


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (PROSE + " {", "curly bracket"),
        (PROSE + " Lorem Ipsum dolor.", "lorem ipsum"),
        ("One sentence is here for you. And there is another one.", "too few sentences"),
        ("Words that have no end\nand lines without a mark", "too few sentences"),
        ("It ends in an ellipsis... It does so again. And it goes on like this...", "too few sentences"),
        (PROSE + " " + "x" * 1001 + ".", "too few sentences"),
    ],
)
def test_c4_drops_pages(text: str, rule: str) -> None:
    assert judged("c4", text) == rule


def test_c4_keeps_the_lines_that_are_sentences() -> None:
    page = "\n".join(
        [
            "Home | News | About",
            PROSE,
            "Please enable Javascript to see this page in full.",
            "By going on you accept our use of cookies on this site.",
            "Too short, this.",
            "The town lies on the coast [1] of the sea.[citation needed]",
        ]
    )
    stays, rule = C4().make_filter("en", Path("."))(page)
    assert rule is None and stays == f"{PROSE}\nThe town lies on the coast  of the sea."
    loose = C4(terminal_marks=False, min_words_per_line=0, javascript=False, policy=False, citations=False)
    assert loose.make_filter("en", Path("."))(page) == (page, None)


def test_c4_refuses_what_a_users_list_names(tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_text("Hat\nred wine\n\n一律\n", encoding="utf-8")
    judge = C4(bad_words="bad.txt")
    assert judge.files == ("bad.txt",)
    assert judge.make_filter("en", tmp_path)(PROSE)[1] == "bad word"
    assert judge.make_filter("en", tmp_path)(PROSE.replace("hat", "hatter"))[1] is None
    assert judge.make_filter("zh", tmp_path)(CHINESE)[1] == "bad word"
    with pytest.raises(DataError, match=r"none\.txt: the list of bad words cannot be read"):
        C4(bad_words="none.txt").make_filter("en", tmp_path)
    (tmp_path / "empty.txt").write_text("\n")
    with pytest.raises(DataError, match="is empty"):
        C4(bad_words="empty.txt").make_filter("en", tmp_path)


def lines(count: int, of: str) -> str:
    return "\n".join(of for _ in range(count))


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("The end of the story.", "too few words"),
        ("a b c d " * 20, "mean word length"),
        ("internationalization " * 60, "mean word length"),
        (PROSE + " #" * 10, "number signs"),
        (PROSE.replace(". ", "... ").replace(" the ", " the... "), "ellipses"),
        (lines(12, "- take the bread and be there with that"), "bullet lines"),
        (PROSE + "\n" + lines(2, "and so it went on…"), "lines ending in an ellipsis"),
        (PROSE + " 1234" * 40, "words without a letter"),
        ("Lange Worte ohne Sinn stehen hier nebeneinander. " * 10, "stop words"),
    ],
)
def test_gopher_names_the_rule_that_is_broken(text: str, rule: str) -> None:
    assert judged("gopher", text) == rule


def test_gopher_thresholds_are_keys() -> None:
    assert judged("gopher", "The end of the story.", min_words=5) is None
    assert judged("gopher", PROSE, max_words=20) == "too many words"
    assert judged("gopher", "Lange Worte und viel Sinn. " * 20, "de") is None
    assert judged("gopher", "Lange Worte ohne Sinn. " * 20, "de", stop_words=["und", "der"]) == "stop words"
    assert judged("gopher", "天地玄黄宇宙洪荒日月盈昃辰宿列张" * 10, "zh", min_stop_words=4) == "stop words"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (
            "\n".join(["Short."] * 3 + [f"A longer line with number {number}." for number in range(3)]),
            "duplicate lines",
        ),
        (
            "\n".join(["A very long line that says the same thing twice over."] * 2 + list("abcdef")),
            "characters in duplicate lines",
        ),
        ("\n\n".join(["One.\nTwo."] * 2 + ["Three.\nFour.\nFive.\nSix.\nSeven"]), "duplicate paragraphs"),
        ("so it is " * 4 + "one two three four five six seven", "top 2-gram"),
        (" ".join(f"again and again number{number}" for number in range(6)) + " x" * 4, "top 2-gram"),
        (f"Before all else {PROSE} then again {PROSE}", "duplicate 5-grams"),
    ],
)
def test_repetition_is_measured_as_the_table_says(text: str, rule: str) -> None:
    assert judged("gopher_repetition", text) == rule


def naive_duplicate_share(words: list[str], size: int) -> float:
    """The share of characters in runs that were there before, each character once."""
    seen: set[tuple[str, ...]] = set()
    covered: set[int] = set()
    for start in range(len(words) - size + 1):
        run = tuple(words[start : start + size])
        if run in seen:
            covered |= set(range(start, start + size))
        seen.add(run)
    return sum(len(words[place]) for place in covered) / sum(map(len, words))


@pytest.mark.parametrize("size", [1, 2, 5, 7])
def test_duplicate_runs_equal_their_definition(size: int) -> None:
    text = f"{PROSE} In short: {PROSE[80:260]} And {PROSE[200:300]}"
    share = naive_duplicate_share(text.split(), size)
    assert 0.05 < share < 0.9
    broken = f"duplicate {size}-grams"
    none: dict[str, Any] = {"top_ngrams": [], "lines": 1, "paragraphs": 1}
    assert judged("gopher_repetition", text, duplicate_ngrams=[[size, share - 1e-6]], **none) == broken
    assert judged("gopher_repetition", text, duplicate_ngrams=[[size, share + 1e-6]], **none) is None


def test_the_top_run_equals_its_definition() -> None:
    text = "of the sea of the sky of the earth and of men"
    share = 3 * len("ofthe") / len(text.replace(" ", ""))
    assert judged("gopher_repetition", text, top_ngrams=[[2, share - 1e-6]]) == "top 2-gram"
    assert judged("gopher_repetition", text, top_ngrams=[[2, share + 1e-6]], duplicate_ngrams=[]) is None


def test_language_tells_long_texts_and_leaves_short_ones() -> None:
    german = "Der Hafen war still, als das letzte Boot kam, und niemand hatte die Lampen angezündet. " * 2
    assert judged("language", german) == "looks like de"
    assert judged("language", german, "de") is None
    assert judged("language", PROSE, "zh") == "looks like en"
    assert judged("language", CHINESE) == "looks like zh"
    assert judged("language", "Der Hafen war still.") is None
    assert judged("language", "Der Hafen war still.", min_letters=10) == "looks like de"
    assert judged("language", "12345 67890 " * 100) is None
    mixed = PROSE + "\n" + german * 3
    assert judged("language", mixed) is not None and judged("language", mixed, least=0.0) is None


@pytest.mark.parametrize(
    ("judge", "language", "says"),
    [(Gopher(), "ja", "'ja' cannot be segmented"), (GopherRepetition(), "th", "cannot be segmented"), (C4(), "km",
    "cannot"),
     (Language(), "xx", "does not know 'xx'")],
)  # fmt: skip
def test_a_language_that_a_filter_cannot_judge_is_refused(judge: Filter, language: str, says: str) -> None:
    assert says in (judge.problem(language) or "")
    assert judge.problem("en") is None and judge.problem("zh") is None
