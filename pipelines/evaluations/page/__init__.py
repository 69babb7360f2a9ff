"""The parts of a report's page: drawings as inline SVG coloured by the page's own style, and the template.

axes.py       ticks and numbers        curves.py    losses over tokens
ancestry.py   data → stages → int8     scores.py    dots with intervals
report.html   the page; everything it needs is inside it
"""
