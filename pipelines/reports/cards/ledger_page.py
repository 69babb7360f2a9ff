"""The leakage ledger as an HTML page: how many texts of each table overlap the evaluation, with examples of each
kind."""

from __future__ import annotations

from collections.abc import Iterable

from pipelines.corpora.leaks.ledger import LedgerEntry, totals
from pipelines.corpora.shards.tables import Row
from pipelines.reports.style import STYLE

LEDGER_PAGE = "ledger.html"
SHOWN_OF_EACH = 20

_MEANINGS = {
    "exact": "the same letters and digits",
    "ngram": "common word n-grams, as a share of those of the shorter text",
    "minhash": "near-duplicate: estimated Jaccard index of word 5-grams",
}
_ACTIONS = {
    "drop": "removed",
    "keep": "kept, as published; leaks.parquet marks the clean evaluation rows",
    "warn": "kept, as set in params.yaml",
}
_TEMPLATE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="color-scheme" content="light dark">
<title>{{ dataset }}: leakage ledger</title>
<style>
{{ style }}
td { overflow-wrap: anywhere } .where { color: var(--muted); font-size: 13.5px }
</style>
</head>
<body>
<h1>{{ dataset }}: training texts that overlap validation and test</h1>
{% if counts %}
<div class="wide"><table>
<tr><th>table</th><th>overlaps</th><th>kind</th><th class="n">texts</th><th>action</th></tr>
{% for each in counts %}
<tr><td>{{ each.table }}</td><td>{{ each.part }}</td><td>{{ each.kind }}</td>\
<td class="n">{{ "{:,}".format(each.texts) }}</td>\
<td>{{ actions[each.action] }}</td></tr>
{% endfor %}
</table></div>
<p class="note">{% for kind, meaning in meanings.items() %}{{ kind }}: {{ meaning }}. {% endfor %}\
A text is counted once for \
each kind of overlap that it has.</p>
{% for (table, part, kind), rows in shown.items() %}
<h2>{{ table }} and {{ part }}: {{ kind }}</h2>
<div class="wide"><table>
<tr><th class="n">overlap</th><th>{{ table }}</th><th>{{ part }}</th></tr>
{% for row in rows %}
<tr><td class="n">{{ "%.2f" | format(row.overlap) }}</td>\
<td>{{ row.excerpt }}<div class="where">{{ row.source }}</div></td>\
<td>{{ row.evaluation_excerpt }}<div class="where">{{ row.evaluation_source }}</div></td></tr>
{% endfor %}
</table></div>
{% endfor %}
{% else %}
<p>No text overlaps.</p>
{% endif %}
</body>
</html>
"""


def page(dataset: str, rows: Iterable[Row]) -> str:
    """A self-contained HTML page: all `rows` counted, the first of each table, part and kind shown."""
    from jinja2 import Environment

    shown: dict[tuple[str, str, str], list[LedgerEntry]] = {}

    def collecting() -> Iterable[Row]:
        for row in rows:
            entry = LedgerEntry(*row)
            some = shown.setdefault((entry.table, entry.part, entry.kind), [])
            if len(some) < SHOWN_OF_EACH:
                some.append(entry)
            yield row

    counts = totals(collecting())
    template = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(_TEMPLATE)
    words = {"meanings": _MEANINGS, "actions": _ACTIONS}
    return template.render(style=STYLE, dataset=dataset, counts=counts, shown=shown, **words) + "\n"
