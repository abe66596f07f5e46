"""Self-contained HTML pages: tables and figures in one file, without external resources."""

from __future__ import annotations

import base64
import html
import struct
from collections.abc import Sequence
from pathlib import Path

from softarm_ros import __version__

_PNG_SIGNATURE = b'\x89PNG\r\n\x1a\n'

_STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 3rem; max-width: 52rem;
  background: #fff; color: #1a1a1a;
  font: 1rem/1.5 system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; padding-bottom: .2rem;
  border-bottom: 1px solid #999; }
p { margin: .4rem 0; }
.lead { color: #444; overflow-wrap: anywhere; }
.warning { border-left: .3rem solid #b34700; background: #fdf3ea; padding: .5rem .8rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .92rem; border-top: 2px solid #1a1a1a;
  border-bottom: 2px solid #1a1a1a; }
th, td { padding: .28rem .8rem .28rem 0; text-align: left; vertical-align: top; }
.facts td { overflow-wrap: anywhere; }
th { font-weight: 600; }
thead th { border-bottom: 1px solid #1a1a1a; vertical-align: bottom; }
tbody th { font-weight: 400; min-width: 8rem; }
td.number, th.number { text-align: right;
  font-variant-numeric: tabular-nums; white-space: nowrap; }
thead th.number { white-space: normal; }
figure { margin: 1.2rem 0 1.8rem; }
figure img { display: block; width: 100%; height: auto; }
figcaption, .small { font-size: .88rem; color: #333; margin-top: .3rem; }
code { font-size: .92em; }
footer { margin-top: 2.5rem; border-top: 1px solid #999; padding-top: .5rem; }
@media print {
  @page { margin: 18mm; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  figure, tr, .warning { break-inside: avoid; }
  h2 { break-after: avoid; }
  .scroll { overflow: visible; }
  table { font-size: 8.5pt; }
  th, td { padding-right: .5rem; overflow-wrap: break-word; }
  tbody th { min-width: 5rem; }
  .warning { background: none; }
}
"""


def escape(text: object) -> str:
    """Return text escaped for use between tags and inside quoted attributes."""
    return html.escape(str(text), quote=True)


def paragraph(text: str, kind: str = '') -> str:
    """Return a paragraph; `kind` is a class of the style sheet."""
    attribute = f' class="{escape(kind)}"' if kind else ''
    return f'<p{attribute}>{escape(text)}</p>'


def section(title: str, *parts: str) -> str:
    """Return a headed section around finished parts."""
    return f'<section>\n<h2>{escape(title)}</h2>\n' + '\n'.join(parts) + '\n</section>'


def table(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, text_columns: Sequence[int] = (0,)
) -> str:
    """
    Return a table; columns outside `text_columns` are formatted as numbers.

    With an empty header, the table has no head. The first cell of a row is its heading.
    """
    text = set(text_columns)
    kind = ' class="facts"' if not header else ''

    def cell(tag: str, column: int, value: str, scope: str = '') -> str:
        kind = '' if column in text else ' class="number"'
        return f'<{tag}{scope}{kind}>{escape(value)}</{tag}>'

    lines = [f'<div class="scroll"><table{kind}>']
    if header:
        cells = ''.join(cell('th', i, name, ' scope="col"') for i, name in enumerate(header))
        lines.append(f'<thead><tr>{cells}</tr></thead>')
    lines.append('<tbody>')
    for row in rows:
        first = cell('th', 0, row[0], ' scope="row"')
        rest = ''.join(cell('td', i, value) for i, value in enumerate(row[1:], start=1))
        lines.append(f'<tr>{first}{rest}</tr>')
    lines.append('</tbody></table></div>')
    return '\n'.join(lines)


def facts(pairs: Sequence[tuple[str, str]]) -> str:
    """Return a two-column table of names and values."""
    return table((), pairs, text_columns=(0, 1))


def png_size(data: bytes) -> tuple[int, int]:
    """
    Return width and height of a PNG image in pixels.

    Raises
    ------
    ValueError
        If the data is not a PNG image.

    """
    if len(data) < 24 or data[:8] != _PNG_SIGNATURE or data[12:16] != b'IHDR':
        raise ValueError('not a PNG image')
    width, height = struct.unpack('>II', data[16:24])
    return int(width), int(height)


def figure(number: int, caption: str, png: Path) -> str:
    """
    Return a numbered figure with the image embedded.

    Raises
    ------
    ValueError
        If the file is not a PNG image; names the file.

    """
    data = png.read_bytes()
    try:
        width, height = png_size(data)
    except ValueError as error:
        raise ValueError(f'figure {png}: {error}') from None
    image = base64.b64encode(data).decode('ascii')
    return (
        f'<figure>\n<img src="data:image/png;base64,{image}" width="{width}" height="{height}" '
        f'alt="{escape(caption)}">\n'
        f'<figcaption><b>Figure {number}.</b> {escape(caption)}</figcaption>\n</figure>'
    )


def figures(captioned: Sequence[tuple[str, Path]]) -> list[str]:
    """Return figures numbered from 1."""
    return [figure(i, caption, png) for i, (caption, png) in enumerate(captioned, start=1)]


def page(title: str, lead: str, parts: Sequence[str]) -> str:
    """Return a complete HTML page."""
    return '\n'.join(
        [
            '<!DOCTYPE html>',
            '<html lang="en">',
            '<head>',
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<title>{escape(title)}</title>',
            f'<style>{_STYLE}</style>',
            '</head>',
            '<body>',
            f'<header>\n<h1>{escape(title)}</h1>',
            paragraph(lead, 'lead'),
            '</header>',
            '<main>',
            *parts,
            '</main>',
            f'<footer class="small">softarm_ros {escape(__version__)}</footer>',
            '</body>',
            '</html>',
            '',
        ]
    )
