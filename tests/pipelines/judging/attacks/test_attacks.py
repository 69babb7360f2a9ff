"""What every attack promises: other words, the same right answers, the same for the same draw."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as parquet
import pytest
from pypinyin import Style, lazy_pinyin

from pipelines.errors import DataError
from pipelines.judging.attacks import TEXTS, Attack, ModelAttack
from pipelines.judging.attacks.distractor import QUESTION_WORDS, sentence
from pipelines.judging.attacks.keyboard_typos import neighbours
from pipelines.judging.attacks.word_tables import WordTableAttack
from pipelines.task_families import TaskFamily
from pipelines.task_families.writing_systems import has_han
from tests.contracts.families import build, members
from tests.contracts.trials import tables
from tests.pipelines.judging.attacks.masked_model import masked_model
from tests.pipelines.judging.attacks.word_model import word_model
from tests.small_corpus import documents
from tests.small_tasks import chinese_reviews

MEMBERS = {name: one for name, one in members("attacks").items() if issubclass(one, Attack)}
NAMES = sorted(members("attacks"))
TYPED = ["keyboard_typos", "swapped_letters", "shuffled_middle", "shuffled_letters", "natural_typos", "letter_case"]


def attack(name: str, **keys: Any) -> Attack:
    return Attack.model_validate({"name": name, **keys})


def made(name: str) -> Attack:
    one = build(MEMBERS[name])
    assert isinstance(one, Attack)
    if isinstance(one, ModelAttack):
        return one.reading(word_model() if isinstance(one, WordTableAttack) else masked_model())
    return one


def language_of(one: Attack) -> str:
    return "en" if one.languages is None or "en" in one.languages else min(one.languages)


def draw(*place: int) -> np.random.Generator:
    return np.random.default_rng([0, *place])


EVERY = [(name, family) for name in NAMES for family in sorted(MEMBERS[name].families)]


@pytest.mark.parametrize(("name", "family"), EVERY)
def test_right_answers_stay_right_and_can_be_read(name: str, family: str) -> None:
    one, kind = made(name), TaskFamily.model_validate(family)
    language = language_of(one)
    rows = parquet.read_table(tables(family, language)["train"]).to_pylist()
    changed, could = 0, 0
    for number, row in enumerate(rows):
        other = one.example(row, kind, 1.0, draw(number), language)
        assert kind.problem(other) is None, other
        assert other.keys() == row.keys()
        quoted = family == "span_extraction"
        assert quoted or kind.gold(other) == kind.gold(row)
        # an answer that stands in its text is what it was, wherever it now stands
        assert other.get("answer_texts") == row.get("answer_texts")
        assert [other.get("span1"), other.get("span2")] == [row.get("span1"), row.get("span2")]
        assert one.example(row, kind, 1.0, draw(number), language) == other
        assert "text" in kind.columns or other["text"] == kind.text(other)
        changed += kind.text(other) != kind.text(row)
        could += language == "en" or has_han(kind.text(row))
    assert changed > could / 4 or not could, "an attack at full rate changes many examples"


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"distractor", "sampled_ngram"}))  # of which whole texts change
def test_the_rate_is_a_share_of_words(name: str) -> None:
    one, language = made(name), language_of(made(name))
    texts = documents("logging")[:40] if language == "en" else [text for text, _ in chinese_reviews()[:80]]
    whole = " ".join(texts) if language == "en" else "".join(texts)

    def share(rate: float) -> float:
        before, after = _units(whole, language), _units(one.change(whole, rate, draw(), language), language)
        return sum(old != new for old, new in zip(before, after, strict=True)) / len(before)

    if name == "punctuation":  # it moves what stands behind
        marks = [
            one.change(whole, rate, draw(), language).count("," if language == "en" else "，")
            for rate in (0.0, 0.1, 0.5)
        ]
        assert marks[0] == whole.count("," if language == "en" else "，") and marks[0] < marks[1] < marks[2]
        return
    if name == "synonyms":  # one word may become two
        assert one.change(whole, 0.0, draw(), language) == whole != one.change(whole, 1.0, draw(), language)
        return
    low, half, full = share(0.0), share(0.5), share(1.0)
    assert low == 0.0 < half < full
    assert half / full == pytest.approx(0.5, abs=0.12)


def _units(text: str, language: str) -> list[str]:
    return text.split() if language == "en" else [*text]


def test_letters_are_moved_inside_words_and_kept() -> None:
    text = "The characters of wonderful sentences, nevertheless remaining recognisable."
    for name, ends in (("swapped_letters", True), ("shuffled_middle", True), ("shuffled_letters", False)):
        found = attack(name).change(text, 1.0, draw(), "en")
        for old, new in zip(text.split(), found.split(), strict=True):
            assert Counter(old) == Counter(new)
            assert not ends or (old[0], old.strip(",.")[-1]) == (new[0], new.strip(",.")[-1])
        differ = [
            sum(a != b for a, b in zip(old, new, strict=True))
            for old, new in zip(text.split(), found.split(), strict=True)
        ]
        assert name != "swapped_letters" or set(differ) <= {0, 2}
    assert attack("shuffled_middle").change("see all of it, aaaa", 1.0, draw(), "en") == "see all of it, aaaa"


def test_a_key_is_mistaken_for_one_that_touches_it() -> None:
    near = neighbours("qwerty")
    assert set(near["g"]) == set("tyfhvb") and set(near["q"]) == set("wa") and set(near["m"]) == set("njk")
    assert set(neighbours("qwertz")["t"]) == set("rzfg")
    text = "Wonderful SENTENCES"
    for turn in range(30):
        found = attack("keyboard_typos").change(text, 1.0, draw(turn), "en")
        for old, new in zip(text.split(), found.split(), strict=True):
            ((was, became),) = [(a, b) for a, b in zip(old, new, strict=True) if a != b]
            assert became.lower() in near[was.lower()] and became.isupper() == was.isupper()


def test_a_nearest_word_is_that_of_the_largest_cosine(tmp_path: Path) -> None:
    path, random = tmp_path / "vectors.txt", np.random.default_rng(0)
    words = ["big", "large", "huge", "small", "blue", "big"]
    vectors = random.normal(size=(6, 4))
    lines = [" ".join([word, *map(str, vector)]) for word, vector in zip(words, vectors, strict=True)]
    path.write_text("\n".join(["6 4", *lines]) + "\n", encoding="utf-8")
    unit = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True))[:5]
    ranked = [
        words[row] for row in np.argsort(-(unit @ unit[0])) if row != 0
    ]  # the second vector of a word is left out
    one = attack("nearest_words", vectors=str(path), neighbours=2)
    made = {one.change("Big news", 1.0, draw(turn), "en") for turn in range(30)}
    assert made == {f"{word.capitalize()} news" for word in ranked[:2]}, "the unknown word stays as it is"
    assert (
        attack("nearest_words", vectors=str(path), neighbours=1).change("BIG", 1.0, draw(), "en") == ranked[0].upper()
    )
    for text, says in (
        ("a 1 2\nb 1\n", "vectors.txt, line 2: expected a word and 2 finite numbers, not all 0"),
        ("a 1 x\n", "line 1: expected a word and finite numbers"),
        ("a 0 0\nb 1 2\n", "line 1: expected a word and finite numbers, not all 0"),
        ("a 1 nan\nb 1 2\n", "line 1: expected"),
        ("2 2\na 1 2\n", "1 words have no others near them"),
    ):
        other = tmp_path / f"{len(text)}-vectors.txt"
        other.write_text(text, encoding="utf-8")
        with pytest.raises(DataError, match=says):
            attack("nearest_words", vectors=str(other)).change("a", 1.0, draw(), "en")
    with pytest.raises(DataError, match="nowhere.txt: cannot be read as word vectors"):
        attack("nearest_words", vectors="nowhere.txt").change("a", 1.0, draw(), "en")


def test_a_homophone_sounds_the_same_in_its_phrase_and_a_look_alike_is_of_the_table() -> None:
    text = "银行行长觉得音乐很快乐。"
    for turn in range(20):
        found = attack("homophones").change(text, 1.0, draw(turn), "zh")
        assert len(found) == len(text) and found[-1] == "。" and found != text
        for was, became, sound in zip(text, found, lazy_pinyin(text, style=Style.TONE3), strict=False):
            assert was == became or lazy_pinyin(became, style=Style.TONE3) == [sound]
    assert attack("look_alikes").change("己", 1.0, draw(), "zh") in ("已", "巳")


def test_words_of_a_lexicon_keep_their_capitals_and_the_longest_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "words.tsv"
    path.write_text("# mine\nbig\tlarge\nbig city\tmetropolis\n", encoding="utf-8")
    mine = attack("synonyms", lexicon=str(path))
    assert mine.change("The Big city and a BIG bigger big one", 1.0, draw(), "en") == (
        "The Metropolis and a LARGE bigger large one"
    )
    assert mine.reads_files == (path,)
    for wrong, says in (("big\n", "line 1"), ("big\tbig\n", "line 1"), ("# none\n", "contains no word")):
        other = tmp_path / f"{len(wrong)}{says[:3]}.tsv"
        other.write_text(wrong, encoding="utf-8")
        with pytest.raises(DataError, match=says):
            attack("natural_typos", lexicon=str(other)).change("big", 1.0, draw(), "en")
    with pytest.raises(DataError, match="cannot be read as a lexicon"):
        attack("natural_typos", lexicon=str(tmp_path / "none.tsv")).change("big", 1.0, draw(), "en")


def test_answers_that_overlap_or_repeat_are_found_where_they_stood() -> None:
    context = "Ada met Ada Lovelace in London; London remembers Ada Lovelace."
    texts, starts = ["Ada Lovelace", "Lovelace", "London", "Ada"], [8, 12, 32, 0]
    row = {"context": context, "question": "Who was it?", "answer_texts": texts, "answer_starts": starts}
    family = TaskFamily.model_validate("span_extraction")
    for turn in range(20):
        other = attack("synonyms").example(row, family, 1.0, draw(turn), "en")
        assert other["context"] == context, "none of its words is in the lexicon"
        other = attack("punctuation").example(row, family, 1.0, draw(turn), "en")
        assert family.problem(other) is None
        order = [start for _, start in sorted(zip(starts, other["answer_starts"], strict=True))]
        assert order == sorted(order) and other["context"].count("London") == 2
        assert other["context"].find("London") < other["answer_starts"][2]


@pytest.mark.parametrize("language", sorted(QUESTION_WORDS))
def test_a_distractor_says_none_of_the_answers_and_something_else_than_the_question(language: str) -> None:
    asked = {
        "en": [
            ("Who wrote the Principia in 1687?", ["Isaac Newton"]),
            ("How many people live in Paris?", ["17"]),
            ("why?", []),
        ],
        "zh": [("谁在1842年写了《红楼梦》？", ["曹雪芹"]), ("他是哪里人？", ["青石城"]), ("有多少人口？", ["17"])],
    }[language]
    for question, right in asked:
        for turn in range(20):
            told = sentence(question, right, draw(turn), language)
            assert told[-1] in ".。" and "?" not in told and "？" not in told
            assert not any(answer in told for answer in right)
            assert (
                question.rstrip("?？") not in told and "1687" not in told and "1842" not in told and "Paris" not in told
            )


def test_it_says_for_which_languages_and_families_it_is() -> None:
    for name in TYPED:
        assert made(name).unfit("text_classification", "zh") is not None
        assert made(name).unfit("text_classification", "en") is None
    assert "is for zh" in str(made("homophones").unfit("tagging", "en"))
    assert "is for span_extraction" in str(made("distractor").unfit("tagging", "en"))
    assert made("synonyms").unfit("tagging", "fr") is not None
    assert "word_analogies" not in TEXTS and made("letter_case").unfit("word_analogies", None) is not None
