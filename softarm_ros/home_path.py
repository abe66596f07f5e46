"""Paths that users write from a home folder, as `~/bags` or `~lab/arm.yaml`."""

from __future__ import annotations

from pathlib import Path


class HomeFolderError(ValueError):
    """A path begins at a home folder that does not exist; the message names option and path."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f'{where}: {why}')
        self.why = why


def expand_home(path: str | Path, named: str) -> Path:
    """
    Return a path with `~` and `~user` replaced; `named` begins the message, as `--bag ` does.

    Raises
    ------
    HomeFolderError
        If this computer has no such user, or the user has no home folder.

    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        user = Path(path).parts[0][1:]
        why = f'this computer has no user {user!r}' if user else 'HOME is not set'
        raise HomeFolderError(f'{named}{path}', f'{why}; expected another path') from None
