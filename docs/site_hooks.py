"""
What mkdocs does not do by itself: pages from outside docs/, and links between all of them.

The pages are written for readers of the repository; links in them are paths in it. On the site,
what is a page there is linked as such, and what is a file of the source tree is named.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
# Pages of the site that are written elsewhere in the repository.
ELSEWHERE = {
    'index.md': 'README.md',
    'changelog.md': 'CHANGELOG.md',
    'contributing.md': 'CONTRIBUTING.md',
    'firmware.md': 'firmware/README.md',
    'firmware_emulation.md': 'firmware/emulation/README.md',
    'reproduction.md': 'reproduction/README.md',
}
_SITE_OF = {source: page for page, source in ELSEWHERE.items()}
# Whatever begins first: code is left alone, but may be within a link's text.
_LINK_OR_CODE = re.compile(
    r'^```.*?^```$|(?P<before>!?\[(?P<text>[^\]]*)\])\((?P<target>[^)\s]+)\)|`[^`\n]*`',
    re.MULTILINE | re.DOTALL,
)
_LIST_ITEM = re.compile(r'^(?:[-*]|\d+\.) ')


def on_files(files: Files, config: Any) -> Files:
    """Add the pages from outside docs/."""
    for page, source in ELSEWHERE.items():
        text = (ROOT / source).read_text(encoding='utf-8')
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Lead links to pages of the site; set lists apart, as this dialect of Markdown wants it."""
    here = page.file.src_uri
    source = ELSEWHERE.get(here, f'docs/{here}')
    linked = _LINK_OR_CODE.sub(lambda match: _linked(match, source, here), markdown)
    return _with_lists_apart(linked)


def _linked(match: re.Match[str], source: str, here: str) -> str:
    """Return a link as it is to be on the site."""
    target = match['target']
    if target is None or target.startswith('#') or re.match(r'[a-z]+:', target):
        return match[0]
    path, hash_mark, anchor = target.partition('#')
    in_tree = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    if in_tree in _SITE_OF:
        site = _SITE_OF[in_tree]
    elif in_tree.startswith('docs/'):
        site = in_tree.removeprefix('docs/')
    elif (ROOT / in_tree).exists():
        text = match['text']
        return text if in_tree in text else f'{text} (`{in_tree}`)'
    else:
        return match[0]  # leads nowhere: mkdocs says so
    relative = posixpath.relpath(site, posixpath.dirname(here) or '.')
    return f'{match["before"]}({relative}{hash_mark}{anchor})'


def _with_lists_apart(markdown: str) -> str:
    lines, in_code = [], False
    for line in markdown.splitlines():
        if line.startswith('```'):
            in_code = not in_code
        starts = not in_code and _LIST_ITEM.match(line)
        if starts and lines and lines[-1].strip() and not _in_list(lines):
            lines.append('')
        lines.append(line)
    return '\n'.join(lines) + '\n'


def _in_list(lines: list[str]) -> bool:
    """Return whether the paragraph that ends these lines belongs to a list."""
    for line in reversed(lines):
        if not line.strip():
            return False
        if _LIST_ITEM.match(line):
            return True
    return False
