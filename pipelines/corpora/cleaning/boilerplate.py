"""boilerplate: lines of a web page that do not belong to its text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import ClassVar

from pydantic import Field, field_validator

from pipelines.corpora.cleaning import Repair

_ENGLISH = r"""
    (?:this|our|the)\s(?:web)?(?:site|page)\s(?:also\s)?uses?\scookies\b.*
  | (?:we|by\susing\sthis\ssite).*\b(?:use\sof|uses?)\scookies\b.*
  | (?:accept|reject|allow|manage)\s(?:all\s)?(?:the\s)?cookies\W*
  | (?:cookie|privacy)\s(?:policy|settings|preferences|notice)\W*
  | (?:terms|conditions)\sof\s(?:use|service|sale)\W* | .*\ball\srights\sreserved\b.*
  | (?:copyright\s)?(?:©|\(c\))\s?(?:copyright\s)?\d{4}\b.* | copyright\s(?:©\s|\(c\)\s)?\d{4}\b.*
  | (?:share|tweet|pin|e-?mail|print)(?:\s(?:this|it|on|via|to|with|by|page|post|article|story|link|your|friends
      |(?:a\s)?friend
      |facebook|twitter|x|linkedin|pinterest|whatsapp|reddit|e-?mail))*\W*
  | (?:follow|like|find)\sus\son\b.{0,60} | subscribe(?:\snow|\sto\s.{1,60})?\W* | sign\sup(?:\sfor\s.{1,60})?\W*
  | (?:log|sign)\sin\W*
  | (?:skip|jump)\sto\s(?:the\s)?(?:main\s)?(?:content|navigation|search)\W*
  | (?:back|return|go)\sto\s(?:the\s)?(?:top|home(?:page)?)\W*
  | (?:read|view|show|load|see)\s(?:more|all)\W* | continue\sreading\W* | click\shere\b.{0,60}
  | leave\sa\s(?:comment|reply)\W*
  | (?:previous|next|older|newer)\s(?:page|post|article|chapter)s?\W*
  | (?:related|popular|recent)\s(?:articles|posts|stories)\W*
  | advertise?ments?\W* | sponsored(?:\scontent)?\W* | loading\W* | (?:proudly\s)?powered\sby\s.{1,40}
  | (?:please\s)?enable\sjavascript\b.* | javascript\s(?:is\s(?:disabled|required)|must\sbe\senabled)\b.*
  | \W*page\s\d{1,4}(?:\s(?:of|/)\s\d{1,4})?\W* | [-–—]\s?\d{1,4}\s?[-–—]
"""
_CHINESE = r"""
    .*(?:版权所有|保留所有权利|保留一切权利).*
  | .*未经.{0,12}(?:授权|许可|同意|允许).{0,12}(?:不得|禁止|严禁|请勿)转载.*
  | .*ICP[备证].*
  | .*公网安备.* | 分享(?:到|至|给).{0,30} | (?:微信|手机)?(?:扫一扫|扫码|扫描二维码).{0,30}
  | .{0,10}关注.{0,12}(?:公众号|微信号|微博).{0,20}
  | 点击(?:这里|此处|查看|进入|阅读|下载).{0,20} | (?:阅读|查看|展开|显示|加载)(?:全文|更多|原文|剩余.{0,6})\W*
  | (?:责任编辑|责编|编辑|来源|原标题)[:：].{0,30} | 返回(?:顶部|首页|列表|上一页|搜狐.{0,8})\W*
  | (?:上|下)一(?:篇|页|章)(?:[:：].{0,40})?
  | (?:相关|推荐|热门|延伸)(?:阅读|文章|新闻|推荐|链接)[:：]?\W*
  | (?:登录|注册|登录[/|]?注册|我要评论|发表评论|网友评论)\W*
  | 本(?:站|网站|网)使用\s?cookies?.* | (?:免责声明|特别声明)[:：].*
  | \W*第\s?\d{1,4}\s?页(?:\s?[,，/]?\s?共\s?\d{1,4}\s?页)?\W*
"""
_LINES = {"en": _ENGLISH, "zh": _ENGLISH + "|" + _CHINESE}
"""Language → patterns of whole lines. English boilerplate occurs on pages in any language."""


class Boilerplate(Repair, name="boilerplate"):
    """Remove short boilerplate lines: cookies, copyright, "share on", navigation, page numbers.

    A line is removed only when all of it matches. The patterns are our own, for English and Chinese. Passages shared by
    many documents are left to deduplication; running heads of one document are removed with `repeated`.
    """

    of_documents: ClassVar[bool] = True

    longest_line: int = Field(default=120, ge=1)
    """Maximum characters; longer lines are kept."""
    lines: tuple[str, ...] = ()
    """Further regular expressions of whole lines, case-insensitive."""
    repeated: int | None = Field(default=None, ge=2)
    """Remove lines that occur this often in one document, such as page headers and footers; null: keep them."""

    @field_validator("lines")
    @classmethod
    def _regular(cls, lines: tuple[str, ...]) -> tuple[str, ...]:
        for line in lines:
            try:
                re.compile(line)
            except re.error as error:
                raise ValueError(f"{line!r} is not a regular expression: {error}") from None
        return lines

    def make_repair(self, language: str) -> Callable[[str], str]:
        """A function that repairs texts of a language."""
        known = re.compile(_LINES.get(language, _ENGLISH), re.IGNORECASE | re.VERBOSE)
        own = re.compile("|".join(f"(?:{line})" for line in self.lines) or r"(?!)", re.IGNORECASE)
        longest = self.longest_line

        def repair(text: str) -> str:
            lines = text.split("\n")
            stripped = [line.strip() for line in lines]
            repeated = set()
            if self.repeated is not None and len(lines) >= self.repeated:
                repeated = {line for line, count in Counter(stripped).items() if line and count >= self.repeated}
            kept = [
                line
                for line, content in zip(lines, stripped, strict=True)
                if not content
                or len(content) > longest
                or not (content in repeated or known.fullmatch(content) or own.fullmatch(content))
            ]
            return text if len(kept) == len(lines) else "\n".join(kept)

        return repair
