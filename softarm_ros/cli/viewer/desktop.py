"""Opens a page in a browser on the desktop of this machine, if there is one."""

from __future__ import annotations

import os
import sys
import webbrowser


def has_desktop() -> bool:
    """Return whether this process has a desktop to open a browser on."""
    if sys.platform == 'darwin':
        return True
    return any(os.environ.get(name) for name in ('DISPLAY', 'WAYLAND_DISPLAY'))


def open_page(address: str) -> bool:
    """Open an address in a browser if there is a desktop; return whether that succeeded."""
    return has_desktop() and webbrowser.open(address)
