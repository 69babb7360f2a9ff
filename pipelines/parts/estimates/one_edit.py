"""Words that differ in one letter: the nearest spellings of a word (Levenshtein 1966)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence


def words_at_one_edit(words: Sequence[str], known: Mapping[str, int]) -> list[list[int]]:
    """For each of `words` the numbers of those of `known` at an edit distance of 1, ascending.

    An edit inserts, deletes or replaces one character. Words at one edit have a form with one character less in
    common, or one of them is that form of the other, so that no pair of words is compared for nothing.
    """
    by_form: dict[str, list[str]] = defaultdict(list)
    for word in known:
        for form in _forms(word):
            by_form[form].append(word)
    result = []
    for word in words:
        near = {other for form in _forms(word) for other in by_form.get(form, ()) if is_one_edit(word, other)}
        result.append(sorted(known[other] for other in near))
    return result


def is_one_edit(first: str, second: str) -> bool:
    """Whether the edit distance of two words is 1."""
    short, long = sorted((first, second), key=len)
    if len(long) - len(short) > 1 or short == long:
        return False
    same = next((at for at, letter in enumerate(short) if letter != long[at]), len(short))
    # after the first difference, all is alike; a replaced character is skipped in both
    return short[same + (len(short) == len(long)) :] == long[same + 1 :]


def _forms(word: str) -> set[str]:
    return {word, *(word[:at] + word[at + 1 :] for at in range(len(word)))}
