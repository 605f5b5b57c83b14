"""Bar charts as one SVG: a bar for each name, with its spread."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

_ROW, _LABELS, _BARS, _HEAD = 24, 380, 420, 40

Bars = Mapping[str, Mapping[str, Any]]


def chart(sections: Mapping[str, Bars]) -> str:
    """Readable on a light page and on a dark one. Each section has a scale of its own."""
    lines: list[str] = []
    y = 0
    for title, bars in sections.items():
        if bars:
            lines += [f'<text x="10" y="{y + 22}" font-weight="bold">{escape(title)}</text>', *_bars(y, bars)]
            y += _HEAD + _ROW * len(bars) + 10
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LABELS + _BARS + 70}" height="{y}"'
        ' font-family="sans-serif" font-size="13" fill="#888">'
    )
    return "\n".join([head, *lines, "</svg>", ""])


def _bars(top: int, bars: Bars) -> list[str]:
    scale = _BARS / max(bar["high"] for bar in bars.values())
    lines = []
    for number, (name, bar) in enumerate(bars.items()):
        y = top + _HEAD + number * _ROW
        low, middle, high = (_LABELS + bar[key] * scale for key in ("low", "median", "high"))
        lines += [
            f'<text x="{_LABELS - 8}" y="{y + 14}" text-anchor="end">{escape(name)}</text>',
            f'<rect x="{_LABELS}" y="{y + 3}" width="{middle - _LABELS:.1f}" height="14" fill="#4a90d9"/>',
            f'<path d="M{low:.1f} {y + 10}H{high:.1f}" stroke="#888" stroke-width="2"/>',
            f'<text x="{high + 6:.1f}" y="{y + 14}">{bar["median"]:.2f}</text>',
        ]
    return lines
