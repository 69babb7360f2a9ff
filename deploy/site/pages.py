"""Pages of the documentation site that are no files of docs/, their navigation, and links as GitHub resolves them.

    README.md, README.zh.md          ─▶ index.md, index.zh.md
    CONTRIBUTING.md, CHANGELOG.md    ─▶ contributing.md, changelog.md
    recipes/*.yaml                   ─▶ recipes/<name>.md, and a gallery of all
    docs/decisions                   ─▶ decisions/index.md, a list of all

mkdocs calls the functions that begin with `on_` (hooks of mkdocs.yml). Files that a page links to and that are no page
are shown as they are on a page of their own.
"""

from __future__ import annotations

import os
import posixpath
import re
import sys
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from ruamel.yaml import YAML

sys.path.insert(0, str(Path(__file__).parent))  # mkdocs loads this file by its path
from drawings import STYLE, draw_recipe

ROOT = Path(__file__).parents[2]
TUTORIAL = "tutorial.md"
INDEX = {"en": "index.md", "zh": "index.zh.md"}
"""Language → the page of its README."""
MOVED = {
    "README.md": INDEX["en"],
    "README.zh.md": INDEX["zh"],
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "docs/plans.yaml": "plans.md",
}
"""File of the checkout → page, for those that are elsewhere on the site."""
SECTIONS: dict[str, tuple[str, ...]] = {
    "Concepts": ("concepts", "glossary"),
    "Use": ("data", "training", "compression", "serving", "promotion", "python"),
    "Measure": ("measuring", "lattices", "claims", "systems", "reliability", "performance", "journal"),
    "Operate": ("supported", "servers", "clusters", "security", "limits", "footguns"),
    "Reference": ("commands", "api", "catalogue", "plans", "contributing", "changelog"),
}
"""Section of the navigation → its pages."""
CHINESE_SECTIONS: dict[str, tuple[str, ...]] = {
    "概念": ("concepts",),
    "使用": ("data", "training", "compression", "serving", "promotion", "python"),
    "测量": ("measuring",),
    "运维": ("servers", "clusters"),
    "参考": ("commands",),
}
"""Section of the Chinese part of the navigation → its pages, of docs/zh."""
DRAWINGS = "benchmarks/records"
"""Folder of drawings that pages show, and that is not in docs/."""
LINK = re.compile(r"(\]\()([^)\s]+)(\))")
FENCE = re.compile(r"^(```|~~~)")
ITEM = re.compile(r"^(?:[-*] |\d+\. )")
BETWEEN_CHARACTERS = re.compile(
    r"(?<=[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef])\n *(?=[\u4e00-\u9fff\uff08])"
    r"|(?<=[\u3001\u3002\uff0c\uff1a\uff1b\uff09])\n *(?=`(?!`)|\[)"
)
"""The end of a line inside of a Chinese sentence, and after its punctuation, which HTML would show as a space."""
PRINTED = {".yaml": "yaml", ".ipynb": "json"}
"""Suffixes of files that are shown as they are, and their language."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put every page into the navigation."""
    decisions = sorted(path.name for path in (ROOT / "docs" / "decisions").glob("*.md"))
    config.nav = [
        {"Cursus": INDEX["en"]},
        {"Tutorial": TUTORIAL},
        {"中文": [{"Cursus": INDEX["zh"]}, {"教程": f"zh/{TUTORIAL}"}, *_translated()]},
        *({title: [f"{name}.md" for name in names]} for title, names in SECTIONS.items()),
        {"Recipes": ["recipes/index.md", *(f"recipes/{name}.md" for name in recipes())]},
        {"Decisions": ["decisions/index.md", *(f"decisions/{name}" for name in decisions)]},
    ]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made here."""
    for source, page in MOVED.items():
        files.append(File.generated(config, page, content=_shown(ROOT / source)))
    for name, path in recipes().items():
        files.append(File.generated(config, f"recipes/{name}.md", content=_recipe(path)))
    for path in sorted((ROOT / DRAWINGS).glob("*.svg")):
        files.append(File.generated(config, f"{DRAWINGS}/{path.name}", abs_src_path=str(path)))
    files.append(File.generated(config, "recipes/index.md", content=_gallery()))
    files.append(File.generated(config, "decisions/index.md", content=_decisions()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links as seen from the page, and lists as GitHub reads them: Python-Markdown wants a blank line before one."""
    uri = page.file.src_uri
    lines: list[str] = []
    in_fence = False
    for line in markdown.splitlines():
        if FENCE.match(line):
            in_fence = not in_fence
        elif not in_fence:
            line = LINK.sub(lambda link: f"{link[1]}{_target(link[2], uri)}{link[3]}", line)
            before = lines[-1] if lines else ""
            if ITEM.match(line) and before.strip() and not ITEM.match(before) and not before.startswith(" "):
                lines.append("")
        lines.append(line)
    text = "\n".join(lines)
    return BETWEEN_CHARACTERS.sub("", text) if _is_chinese(uri) else text


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """State the language of the page."""
    return output.replace('<html lang="en"', '<html lang="zh"', 1) if _is_chinese(page.file.src_uri) else output


@cache
def recipes() -> dict[str, Path]:
    """Recipe → its file."""
    return {path.stem: path for path in sorted((ROOT / "recipes").glob("*.yaml")) if path.name != "systems.yaml"}


def _is_chinese(uri: str) -> bool:
    return uri == INDEX["zh"] or uri.startswith("zh/")


def _translated() -> list[dict[str, list[str]]]:
    return [{title: [f"zh/{name}.md" for name in names]} for title, names in CHINESE_SECTIONS.items()]


def _target(link: str, uri: str) -> str:
    """A link of the page `uri`, as it is on the site."""
    address, hash_sign, anchor = link.partition("#")
    if not address or re.match(r"[a-z]+:", address):
        return link
    origin = next((source for source, page in MOVED.items() if page == uri), f"docs/{uri}")
    meant = posixpath.normpath(posixpath.join(posixpath.dirname(origin), address))
    if meant in MOVED:
        goal = MOVED[meant]
    elif meant.startswith("docs/"):
        goal = _whole_name(meant.removeprefix("docs/"))
    elif posixpath.dirname(meant) == DRAWINGS:
        goal = meant
    elif meant.startswith("recipes/") and Path(meant).stem in recipes():
        goal = f"recipes/{Path(meant).stem}.md"
    else:
        raise PluginError(f"{origin}: the site has no page for the link {link!r}")
    return posixpath.relpath(goal, posixpath.dirname(uri) or ".") + hash_sign + anchor


def _whole_name(name: str) -> str:
    """A decision may be named by its number."""
    if (ROOT / "docs" / name).is_file() or name == "decisions/index.md":
        return name
    known = sorted((ROOT / "docs" / name).parent.glob(f"{os.path.basename(name)}-*"))
    return known[0].relative_to(ROOT / "docs").as_posix() if known else name


def _shown(path: Path) -> str:
    """The text of a page, or a file as it is."""
    text = path.read_text(encoding="utf-8")
    language = PRINTED.get(path.suffix)
    return f"# {path.name}\n\n```{language}\n{text}```\n" if language else text


def _values(path: Path) -> dict[str, Any]:
    values: dict[str, Any] = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    return values


def _recipe(path: Path) -> str:
    values = _values(path)
    head = [f"# {path.stem}", str(values.get("description", ""))]
    head += [f"Paper: {values['paper']}"] if "paper" in values else []
    head += [f"{STYLE}\n<div>{drawing}</div>"] if (drawing := draw_recipe(path.parent, path.stem)) else []
    command = f"```sh\ncursus run {path.stem}\n```\n\n`recipes/{path.name}`\n"
    return "\n\n".join([*(part for part in head if part), command]) + _fenced(path)


def _fenced(path: Path) -> str:
    return f"\n```yaml\n{path.read_text(encoding='utf-8')}```\n"


def _gallery() -> str:
    figures = [
        f'<figure>{draw_recipe(path.parent, name)}<figcaption><a href="{name}.html">{name}</a><br>'
        f"{escape(str(_values(path).get('description', '')))}</figcaption></figure>"
        for name, path in recipes().items()
    ]
    head = (
        "# Recipes\n\nEach recipe is one published system over the same parts. A box is a stage, an arrow the weights "
        "that a stage continues, a dashed one its teacher.\n\n"
    )
    return head + STYLE + '\n<div class="gallery">\n' + "\n".join(figures) + "\n</div>\n"


def _decisions() -> str:
    rows = []
    for path in sorted((ROOT / "docs" / "decisions").glob("*.md")):
        title = path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
        rows.append(f"- [{title}]({path.name})")
    return "# Decisions\n\nWhat was decided, why, and what follows from it.\n\n" + "\n".join(rows) + "\n"
