"""The style sheet of reports, dataset cards and ledgers: colours for light, dark and print, and rules for plain
elements.

A page puts it before its own rules. It is a constant, so that a step that makes a page depends on it as on any code.
"""

from __future__ import annotations

from typing import Final

from markupsafe import Markup

PALETTE: Final = Markup(
    """\
:root {
  --paper: #fdfdfb; --ink: #1d2126; --muted: #646c76; --faint: #e6e5df; --panel: #f5f4ef; --accent: #1f5fa8;
  --good: #1c7a4b; --bad: #b3362b; --unsure: #8a6100; --mark: #fbe3b0;
  --c0: #1f5fa8; --c1: #c2571a; --c2: #1c7a4b; --c3: #8e3f97;\
 --c4: #947100; --c5: #b3362b; --c6: #0f7f8c; --c7: #5d6570;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #15181c; --ink: #e4e6e8; --muted: #9aa3ad; --faint: #2c3138; --panel: #1c2025; --accent: #7fb2f0;
    --good: #6cc79a; --bad: #f08d80; --unsure: #e0b457; --mark: #5a4310;
    --c0: #7fb2f0; --c1: #f0a06a; --c2: #6cc79a; --c3: #d192da;\
 --c4: #e0c257; --c5: #f08d80; --c6: #66cbd6; --c7: #a9b1ba;
  }
}
@media print {
  :root {
    --paper: #fff; --ink: #000; --muted: #555; --faint: #ddd; --panel: #f6f6f6; --accent: #1f5fa8;
    --good: #1c7a4b; --bad: #b3362b; --unsure: #8a6100; --mark: #fbe3b0;
    --c0: #1f5fa8; --c1: #c2571a; --c2: #1c7a4b; --c3: #8e3f97;\
 --c4: #947100; --c5: #b3362b; --c6: #0f7f8c; --c7: #5d6570;
  }
}
"""
)
"""Colours for light, dark and print: all that a drawing in a file of its own needs."""

STYLE: Final = PALETTE + Markup(
    """\
* { box-sizing: border-box }
body {
  margin: 0 auto; max-width: 1040px; padding: 56px 40px 80px; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", "Noto Sans", "DejaVu Sans", "Noto Sans CJK SC", "Noto Sans SC",
    "PingFang SC", "Microsoft YaHei", "WenQuanYi Micro Hei", sans-serif;
}
.over { margin: 0; color: var(--muted); font-size: 14px; letter-spacing: .02em }
h1 { font-size: 34px; line-height: 1.2; font-weight: 600; letter-spacing: -.015em; margin: 4px 0 20px }
h2 { font-size: 20px; font-weight: 600; margin: 64px 0 14px; padding-top: 14px; border-top: 1px solid var(--faint) }
h3 { font-size: 15px; font-weight: 600; margin: 28px 0 8px }
p, li { max-width: 72ch }
.note { color: var(--muted); font-size: 14px }
table { border-collapse: collapse; width: 100%; font-size: 14.5px; font-variant-numeric: tabular-nums; margin: 12px 0 }
th {
  text-align: left; font-weight: 500; color: var(--muted); border-bottom: 1px solid var(--ink); padding: 6px 14px 6px 0;
  vertical-align: bottom;
}
td { border-bottom: 1px solid var(--faint); padding: 7px 14px 7px 0; vertical-align: top }
th.n, td.n { text-align: right }
:lang(zh) th { word-break: keep-all }
th:last-child, td:last-child { padding-right: 0 }
code, .mono { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: .88em }
.wide { overflow-x: auto }
.good { color: var(--good) } .bad { color: var(--bad) } .unsure { color: var(--unsure) }
blockquote {
  margin: 8px 0; padding: 8px 16px; background: var(--panel); border-radius: 4px; font-size: 14px;\
 overflow-wrap: anywhere;
}
a { color: var(--accent) }
nav.languages { float: right; font-size: 14px } nav.languages a { margin-left: 14px }
figure { margin: 0 } svg { display: block; width: 100%; height: auto }
details { margin: 14px 0 } summary { cursor: pointer; color: var(--muted); font-size: 14px }
@media (max-width: 700px) { body { padding: 28px 18px } h1 { font-size: 27px } }
@media print {
  body { max-width: none; padding: 0; font-size: 11pt } h2 { break-after: avoid; margin-top: 32px }
  figure, tr, svg { break-inside: avoid } .wide { overflow: visible } nav { display: none }
}
"""
)
