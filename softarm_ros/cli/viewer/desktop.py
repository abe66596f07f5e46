"""Opens a page in the browser of the desktop this runs on, if there is one."""

from __future__ import annotations

import os
import sys
import webbrowser


def has_desktop() -> bool:
    """Return whether a browser that is opened here would be seen by somebody."""
    if sys.platform == 'darwin':
        return True
    return any(os.environ.get(name) for name in ('DISPLAY', 'WAYLAND_DISPLAY'))


def open_page(address: str) -> bool:
    """Open an address on a desktop; return whether that was tried with success."""
    return has_desktop() and webbrowser.open(address)
