"""Chinese pages keep up with their English originals: the same code, tables, figures, names and links."""

from __future__ import annotations

import posixpath
import re

import pytest
from markdown_it import MarkdownIt

from tests.steps import ROOT

DOCS = ROOT / "docs"
PAGES = sorted(path.name for path in (DOCS / "zh").glob("*.md"))
FENCED = re.compile(r"^```\w*\n(.*?)^```", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
LINK = re.compile(r"\]\(([^)\s]+)\)")
NUMBER = re.compile(r"(?<![\w.-])\d[\d,.]*(?<![,.])")
MILLIONS = re.compile(r"(\d+(?:\.\d+)?) million\b")


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def blocks(text: str) -> list[str]:
    """Blocks of code without their comments, which are translated."""
    return [uncommented(code) for code in FENCED.findall(text)]


def uncommented(code: str) -> str:
    return "\n".join(re.sub(r"(^|\s)#\s.*", "", line).rstrip() for line in code.splitlines())


def prose(text: str) -> str:
    return FENCED.sub("", text)


def named(text: str) -> set[str]:
    """The code of sentences and tables."""
    return {" ".join(code.split()) for code in INLINE.findall(prose(text))}


def numbers(text: str) -> set[str]:
    """The numbers of sentences and tables; 30 million are 3,000 万."""
    plain = LINK.sub("", INLINE.sub("", prose(text)))
    return set(NUMBER.findall(MILLIONS.sub(lambda million: f"{round(float(million[1]) * 100):,}", plain)))


def links(text: str, folder: str) -> list[str]:
    """The targets of a page in `folder` of docs/, as English pages."""
    targets = [_target(link, folder) for link in LINK.findall(prose(text)) if not link.startswith("#")]
    return sorted({target.removeprefix("zh/") for target in targets})


def _target(link: str, folder: str) -> str:
    return link if "//" in link else posixpath.normpath(posixpath.join(folder, link.partition("#")[0]))


def outline(text: str) -> list[str | int]:
    """The level of each title, and between them the rows of tables."""
    parts: list[str | int] = []
    for line in prose(text).splitlines():
        if line.startswith("#"):
            parts.append(line.partition(" ")[0])
        elif line.startswith("|") and line.endswith("|"):
            parts[-1:] = [parts[-1] + 1] if isinstance(parts[-1], int) else [parts[-1], 1]
    return parts


@pytest.mark.parametrize("name", PAGES)
def test_both_languages_link_to_each_other_at_their_top(name: str) -> None:
    assert page(name).splitlines()[2] == f"**English** · [中文](zh/{name})"
    assert page(f"zh/{name}").splitlines()[2] == f"[English](../{name}) · **中文**"


@pytest.mark.parametrize("name", PAGES)
def test_both_languages_have_the_same_code_titles_and_tables(name: str) -> None:
    english, chinese = page(name), page(f"zh/{name}")
    assert blocks(chinese) == blocks(english)
    assert outline(chinese) == outline(english)


@pytest.mark.parametrize("name", PAGES)
def test_what_the_original_names_counts_and_links_to_is_in_the_translation(name: str) -> None:
    english, chinese = page(name), page(f"zh/{name}")
    assert named(english) - named(chinese) == set()
    assert numbers(english) - numbers(chinese) == set()
    assert links(chinese, "zh") == links(english, ".")


@pytest.mark.parametrize("name", PAGES)
def test_chinese_pages_lead_to_chinese_pages_where_there_are_some(name: str) -> None:
    english = [link.partition("#")[0] for link in LINK.findall(prose(page(f"zh/{name}")))]
    assert [link for link in english if link.removeprefix("../") in PAGES and link[:3] == "../"] == [f"../{name}"]


@pytest.mark.parametrize("name", [*(f"docs/zh/{name}" for name in PAGES), "README.zh.md"])
def test_emphasis_is_closed_where_no_space_follows(name: str) -> None:
    """`**完。**然后` shows its asterisks: between punctuation and a letter they close nothing."""
    parsed = MarkdownIt().enable("table").parse((ROOT / name).read_text(encoding="utf-8"))
    texts = [part.content for token in parsed for part in token.children or () if part.type == "text"]
    assert [text for text in texts if "**" in text] == []


def test_the_comparison_sees_what_fell_behind() -> None:
    text = "# A\n\nRun `cursus up` 3 times, 1,000 of 4.5 %.\n\n| a |\n|---|\n\n```sh\ncursus up  # now\n```\n"
    assert blocks(text) == ["cursus up"] == blocks(text.replace("# now", "# 现在"))
    assert blocks(text) != blocks(text.replace("up  #", "down  #"))
    assert outline(text) == ["#", 2] and named(text) == {"cursus up"} and numbers(text) == {"3", "1,000", "4.5"}
    assert numbers("30 million, 2.5 million") == {"3,000", "250"} == numbers("3,000 万，250 万")
    assert links("[a](data.md#x) [b](../data.md) [c](https://a.b)", "zh") == ["data.md", "https://a.b"]
