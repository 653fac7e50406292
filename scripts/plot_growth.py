#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws what calls cost where there is more of everything: plot_growth.py [--output FILE.svg]

Reads what benchmarks print with --json. Rows that have an amount ("8 threads alive") become points;
each thing that is counted becomes a panel, each call a line in it. A flat line is a call that does
not care.
"""

import argparse
import json
import math
import sys
from xml.sax.saxutils import escape

PANEL_WIDTH = 380
PANEL_HEIGHT = 190
LEFT, RIGHT, TOP, BOTTOM = 58, 20, 62, 44
COLUMNS = 2
# Told apart also by who does not see colours: lines differ in their dashes too.
STROKES = [("#2563eb", ""), ("#c2410c", "6 3"), ("#15803d", "2 3"), ("#7e22ce", "8 3 2 3")]
STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #1f2937; }
  .title { font-weight: 600; font-size: 13px; }
  .small { font-size: 11px; fill: #4b5563; }
  .grid { stroke: #d1d5db; stroke-width: 1; }
  .back { fill: #ffffff; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e5e7eb; }
    .small { fill: #9ca3af; }
    .grid { stroke: #374151; }
    .back { fill: #111827; }
  }
"""


def read_series(lines):
    """{(what is counted, unit): {call: [(amount, figure)]}}, in the order of the lines."""
    panels = {}
    for line in lines:
        if not line.startswith("{"):
            continue
        row = json.loads(line)
        if row.get("amount") is None:
            continue
        panel = panels.setdefault((row["of"], row["unit"]), {})
        panel.setdefault(row["call"], []).append((row["amount"], row["understudy"]))
    for panel in panels.values():
        for points in panel.values():
            points.sort()
    # A single amount tells nothing of growth.
    return {key: panel for key, panel in panels.items() if len(amounts_of(panel)) > 1}


def amounts_of(panel):
    return sorted({amount for points in panel.values() for amount, _ in points})


def axis_top(highest):
    """The least of 1, 2, 2.5, 5, 10 times a power of ten that is not below."""
    power = 10 ** math.floor(math.log10(highest))
    return next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= highest)


def short(number):
    base = 1024 if number % 1024 == 0 else 1000
    for limit, suffix in ((base**2, " M"), (base, " k")):
        if number >= limit:
            return f"{number / limit:g}{suffix}"
    return f"{number:g}"


def draw_panel(counted, unit, panel, left, top):
    amounts = amounts_of(panel)
    highest = axis_top(max(figure for points in panel.values() for _, figure in points))
    width, height = PANEL_WIDTH - LEFT - RIGHT, PANEL_HEIGHT
    low = math.log10(amounts[0])
    span = math.log10(amounts[-1]) - low

    def place(amount, figure):
        return (LEFT + (math.log10(amount) - low) / span * width,
                TOP + (1 - figure / highest) * height)

    yield f'<g transform="translate({left} {top})">'
    yield f'<text class="title" x="{LEFT}" y="18">{escape(unit)} per call, over {escape(counted)}</text>'
    for part in (0, 0.5, 1):
        y = TOP + (1 - part) * height
        yield f'<line class="grid" x1="{LEFT}" x2="{LEFT + width}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield (f'<text class="small" x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">'
               f'{short(part * highest)}</text>')
    for amount in amounts:
        x, _ = place(amount, 0)
        yield (f'<text class="small" x="{x:.1f}" y="{TOP + height + 18}" text-anchor="middle">'
               f'{short(amount)}</text>')
    for index, (call, points) in enumerate(panel.items()):
        color, dashes = STROKES[index % len(STROKES)]
        places = [place(*point) for point in points]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        yield (f'<polyline fill="none" stroke="{color}" stroke-width="2" '
               f'stroke-dasharray="{dashes}" points="{line}"/>')
        for (x, y), (amount, figure) in zip(places, points):
            yield (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"><title>'
                   f'{escape(call)}, {short(amount)} {escape(counted)}: {figure:.4g} '
                   f'{escape(unit)}</title></circle>')
        key = LEFT + index % 2 * (width // 2 + 10)
        y = 34 + index // 2 * 15
        yield (f'<line x1="{key}" x2="{key + 22}" y1="{y}" y2="{y}" stroke="{color}" '
               f'stroke-width="2" stroke-dasharray="{dashes}"/>')
        yield f'<text class="small" x="{key + 28}" y="{y + 4}">{escape(call)}</text>'
    yield "</g>"


def draw(panels):
    rows = math.ceil(len(panels) / COLUMNS)
    width = PANEL_WIDTH * min(COLUMNS, len(panels))
    height = (TOP + PANEL_HEIGHT + BOTTOM) * rows
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
           f'viewBox="0 0 {width} {height}" role="img">')
    yield "<title>What a call costs, over how much of everything there is</title>"
    yield f"<style>{STYLE}</style>"
    yield f'<rect class="back" width="{width}" height="{height}"/>'
    for index, ((counted, unit), panel) in enumerate(panels.items()):
        yield from draw_panel(counted, unit, panel, index % COLUMNS * PANEL_WIDTH,
                              index // COLUMNS * (TOP + PANEL_HEIGHT + BOTTOM))
    yield "</svg>"


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--output", metavar="FILE", help="default: standard output")
    arguments = parser.parse_args()
    panels = read_series(sys.stdin)
    if not panels:
        sys.exit("plot_growth.py: no row has several amounts; is the input that of a benchmark with --json?")
    text = "\n".join(draw(panels)) + "\n"
    if arguments.output is None:
        sys.stdout.write(text)
    else:
        with open(arguments.output, "w", encoding="utf-8") as output:
            output.write(text)


if __name__ == "__main__":
    main()
