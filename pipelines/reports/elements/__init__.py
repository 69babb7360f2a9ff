"""The elements of a report's pages: drawings as inline SVG coloured by the page's own style, tables, and templates.

axes.py       ticks, number formats    curves.py    losses over tokens        base.html    style and header of all pages
ancestry.py   data → stages → int8     scores.py    dots with intervals       report.html  the first page
table.py      HTML, CSV and LaTeX                                             index.html   all executions
"""
