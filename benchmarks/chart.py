"""A bar chart as SVG: one bar for each name, with its spread."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Protocol

_ROW, _LABELS, _BARS, _TOP = 24, 300, 420, 40


class Spread(Protocol):
    @property
    def median(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...


def chart(title: str, rows: Mapping[str, Spread]) -> str:
    """Readable on a light page and on a dark one."""
    scale = _BARS / max(row.high for row in rows.values())
    height = _TOP + _ROW * len(rows) + 10
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LABELS + _BARS + 70}" height="{height}"'
        ' font-family="sans-serif" font-size="13" fill="#888">',
        f'<text x="10" y="22" font-weight="bold">{escape(title)}</text>',
    ]
    for number, (name, row) in enumerate(rows.items()):
        y = _TOP + number * _ROW
        low, middle, high = (_LABELS + value * scale for value in (row.low, row.median, row.high))
        lines += [
            f'<text x="{_LABELS - 8}" y="{y + 14}" text-anchor="end">{escape(name)}</text>',
            f'<rect x="{_LABELS}" y="{y + 3}" width="{middle - _LABELS:.1f}" height="14" fill="#4a90d9"/>',
            f'<path d="M{low:.1f} {y + 10}H{high:.1f}" stroke="#888" stroke-width="2"/>',
            f'<text x="{high + 6:.1f}" y="{y + 14}">{row.median:g}</text>',
        ]
    return "\n".join([*lines, "</svg>", ""])
