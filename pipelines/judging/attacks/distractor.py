"""A distractor: one more sentence in the text that resembles an answer to the question but answers another one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar

from pipelines.judging.attacks import Attack

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.random import Generator

    from pipelines.task_families import Row, TaskFamily

PEOPLE = {
    "en": ("Jeff Dean", "Mary Arden", "Tomas Brandt", "Ruth Calloway", "Ivan Petrak"),
    "zh": ("陈志远", "林慧敏", "赵文博", "周雅琴", "吴建业"),
}
LOCATIONS = {
    "en": ("Brenford", "Castelmar", "Ostrava Bay", "Lindholm", "New Tarrow"),
    "zh": ("临溪镇", "青石城", "云丰县", "南渡港", "白沙岭"),
}
THINGS = {
    "en": ("a copper lantern", "the second charter", "green marble", "an iron gate", "the lower canal"),
    "zh": ("一盏铜灯", "第二份章程", "青色大理石", "一座铁门", "下游的运河"),
}
ELSEWHERE = {"en": "In the town of {}, ", "zh": "在{}，"}
"""Prefix of the sentence if the question has no name or number to replace: it then is about another location."""
# question words, and the kind of their answer; in search order
QUESTION_WORDS = {
    "en": (
        (r"\b(?:how many|how much|how long|how old|how far)\b", "number"),
        (r"\b(?:when|(?:in |on |during )?(?:what|which) (?:year|month|day|date|century))\b", "year"),
        (r"\b(?:who|whom|whose)\b", "person"),
        (r"\b(?:where|(?:in )?(?:what|which) (?:city|country|town|state|place|region))\b", "place"),
        (r"\b(?:what|which|why|how)\b", "thing"),
    ),
    "zh": (
        ("多少|几(?=[个年月日次位名])|多[大高长远久]", "number"),
        ("(?:什么|何)时候?|哪一?[年天]|几时", "year"),
        ("谁|什么人|哪位|何人", "person"),
        ("哪里|哪儿|何处|何地|什么地方|哪[个座](?:城市|国家|地方|省)", "place"),
        ("什么|哪[个些种]?|何|怎么样?|如何|为何", "thing"),
    ),
}
_NUMBER = re.compile(r"\d+")
_NAME = re.compile(r"(?<=[\w,] )[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)*|《[^》]+》")
_END = re.compile(r"[\s?？。.!！]+$")


class Distractor(Attack, name="distractor"):
    """A sentence after the text: the question with another name or number in it, and an invented answer.

    In the manner of AddSent (Jia & Liang 2017, §3.1), by rules instead of annotators and without querying the model:
    names and numbers of the question are replaced, the question word by an invented answer of its kind. The sentence is
    about something else, so the right answers stay right, and it is last, so they keep their positions. It is not
    always grammatical.
    """

    paper = "arXiv:1707.07328"
    languages: ClassVar[frozenset[str] | None] = frozenset(QUESTION_WORDS)
    families: ClassVar[frozenset[str]] = frozenset({"span_extraction"})

    def change(self, text: str, rate: float, random: Generator, language: str) -> str:
        """The sentence that distracts from `text`, a question; `rate` is ignored."""
        return sentence(text, (), random, language)

    def example(self, row: Row, family: TaskFamily, rate: float, random: Generator, language: str) -> dict[str, Any]:
        """`row` with the sentence after its context; every row, whatever `rate` is."""
        distractor = sentence(row["question"], row["answer_texts"], random, language)
        gap = "" if language == "zh" or row["context"][-1:].isspace() else " "
        result = {**row, "context": f"{row['context']}{gap}{distractor}"}
        return result | ({"text": family.text(result)} if "text" in row else {})


def sentence(question: str, right: Sequence[str], random: Generator, language: str) -> str:
    """A statement similar to `question` about something else that contains none of the `right` answers."""
    locations = LOCATIONS[language]
    statement = _END.sub("", question.strip())
    names = [match[0] for match in _NAME.finditer(statement)]
    changed = _NUMBER.sub(lambda match: _other_number(match[0], random), statement)
    changed = _NAME.sub(lambda match: _other_name(match[0], locations, random), changed)
    if not names and not _NUMBER.search(statement):
        changed = ELSEWHERE[language].format(_one(locations, random)) + changed
    for pattern, kind in QUESTION_WORDS[language]:
        question_word = re.search(pattern, changed, re.IGNORECASE)
        if question_word:
            begin, end = question_word.span()
            changed = changed[:begin] + _answer(kind, right, random, language) + changed[end:]
            break
    for answer in sorted(right, key=len, reverse=True):
        # a question may contain its own answer
        changed = changed.replace(answer, _answer("thing", right, random, language))
    return changed[:1].upper() + changed[1:] + ("。" if language == "zh" else ".")


def _answer(kind: str, right: Sequence[str], random: Generator, language: str) -> str:
    if kind in ("number", "year"):
        made = str(random.integers(1700, 1990) if kind == "year" else random.integers(11, 99))
        return made + ("年" if kind == "year" and language == "zh" else "")
    known = {"person": PEOPLE, "place": LOCATIONS, "thing": THINGS}[kind][language]
    free = [one for one in known if not any(one in answer or answer in one for answer in right)]
    return _one(free or known, random)


def _other_number(number: str, random: Generator) -> str:
    """Another number with the same number of digits."""
    digits = len(number)
    # four digits are usually a year
    low, high = {1: (0, 9), 4: (1100, 2000)}.get(digits, (10 ** (digits - 1), 10**digits - 1))
    other = int(random.integers(low, high))
    return str(other if other < int(number) else other + 1).zfill(len(number))


def _other_name(name: str, known: Sequence[str], random: Generator) -> str:
    other = _one([one for one in known if one != name], random)
    return f"《{other}志》" if name.startswith("《") else other


def _one(known: Sequence[str], random: Generator) -> str:
    return known[int(random.integers(len(known)))]
