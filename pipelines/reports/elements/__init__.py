"""The parts of a report's pages: drawings as inline SVG coloured by the page's own style, tables, and templates.

axes.py       ticks and numbers        curves.py    losses over tokens        base.html    style and header of every page
ancestry.py   data → stages → int8     scores.py    dots with intervals       report.html  the first page
table.py      on a page, as CSV and as LaTeX                                  index.html   all executions
"""
