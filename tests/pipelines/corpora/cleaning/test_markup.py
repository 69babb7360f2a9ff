"""markup and boilerplate: what goes, and above all what stays."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from pipelines.corpora.cleaning import Cleaner
from pipelines.corpora.cleaning.boilerplate import Boilerplate
from pipelines.corpora.cleaning.markup import Markup
from tests.chinese_text import ARTICLES
from tests.small_corpus import documents


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("<p>One <b>two</b> three.</p>", "\nOne two three.\n"),
        ('See <a href="https://x.org/?a=1&amp;b=2">this</a><br/>now', "See this\nnow"),
        ("<!-- note --><script type='text/javascript'>if (a < b) {}</script>Text<style>p {}</style>", "Text"),
        ("<table><tr><td>a</td><td>b</td></tr></table>", "\n\n\ta\t\tb\t\n\n"),
        ("Tom &amp; Jerry&#39;s &lt;3 caf&eacute; &amp;amp;quot;", "Tom & Jerry's <3 café \""),
        ("&lt;b&gt;bold&lt;/b&gt;", "bold"),
        ("<B>loud</B> <IMG src=x.png> end", "loud  end"),
    ],
)
def test_html_goes(before: str, after: str) -> None:
    assert Markup().make_repair("en")(before) == after


@pytest.mark.parametrize(
    "text",
    [
        "a < b and c > d, a<b, i <3 you, 5 > 3",
        "if a <b and c> d: pass",
        "List<String> names; Map<K, V> m; #include <stdio.h>; vector<int> v;",
        "usage: copy <input> <output> [<a> <b>]",
        "the address ?x=1&copy=2&notit; R&D, AT&T; Q&A;",
        "`<b>bold</b>` and ```\n<p>kept</p> &amp;\n``` are code",
        "<html5lib.parser object at 0x7f>",
        "1 << 2 >> 3 <> 4 <= 5 -> 6 <-> 7",
    ],
)
def test_what_only_looks_like_html_stays(text: str) -> None:
    assert Markup().make_repair("en")(text) == text


def test_code_and_references_can_be_chosen() -> None:
    assert Markup(code=True).make_repair("en")("`<b>x</b>`") == "`x`"
    assert Markup(references=False).make_repair("en")("a &amp; <b>b</b>") == "a &amp; b"


@pytest.mark.parametrize(
    ("language", "line"),
    [
        ("en", "This website uses cookies to improve your experience."),
        ("en", "© 2021 The Example Company"),
        ("en", "Copyright 1999-2003 Example Inc. All rights reserved."),
        ("en", "Share on Facebook"),
        ("en", "Share this article via email"),
        ("en", "Skip to main content"),
        ("en", "Read more »"),
        ("en", "Page 3 of 10"),
        ("en", "- 12 -"),
        ("zh", "版权所有 未经授权不得转载"),
        ("zh", "京ICP备12345678号-1"),
        ("zh", "分享到："),
        ("zh", "责任编辑：王某"),
        ("zh", "上一篇：今天的天气"),
        ("zh", "第 3 页 共 10 页"),
        ("zh", "Privacy Policy"),
    ],
)
def test_a_line_of_a_page_goes(language: str, line: str) -> None:
    repair = Boilerplate().make_repair(language)
    assert repair(f"A sentence before.\n{line}\nA sentence after.") == "A sentence before.\nA sentence after."


@pytest.mark.parametrize(
    ("language", "line"),
    [
        ("en", "Cookies are small files that a server asks a browser to keep."),
        ("en", "They share the cost of the house with their friends and neighbours."),
        ("en", "Copyright law protects works of authors."),
        ("en", "Sign in the window said that the shop was closed."),
        ("en", "Next page he wrote a poem."),
        ("zh", "他在会上分享了自己的经验，大家都很受启发。"),
        ("zh", "版权法保护作者的作品。"),
        ("zh", "他把书翻到了下一页，继续读下去。"),
    ],
)
def test_a_sentence_about_the_same_thing_stays(language: str, line: str) -> None:
    assert Boilerplate().make_repair(language)(line) == line


def test_real_text_has_no_boilerplate() -> None:
    english, chinese = Boilerplate().make_repair("en"), Boilerplate().make_repair("zh")
    texts = documents("asyncio", "email", "xml")
    assert [english(text) for text in texts] == texts and chinese("\n".join(ARTICLES)) == "\n".join(ARTICLES)


def test_lines_of_the_user_and_lines_that_repeat() -> None:
    pages = "\n".join(f"THE LIFE OF BEES\nParagraph {number}." for number in range(4))
    assert Boilerplate().make_repair("en")(pages) == pages
    own = Boilerplate(repeated=4, lines=(r"paragraph 2\.",))
    assert own.make_repair("en")(pages) == "Paragraph 0.\nParagraph 1.\nParagraph 3."
    assert Boilerplate(repeated=5).make_repair("en")(pages) == pages
    with pytest.raises(ValidationError, match=r"'\(' is not a regular expression"):
        Cleaner.model_validate({"name": "boilerplate", "lines": ["("]})
