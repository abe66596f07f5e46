"""Output of text to the terminal or to the file of an option."""

from __future__ import annotations

from pathlib import Path

import typer

from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.whole_file import NotWrittenError, write_text


def write_or_print(text: str, output: Path | None) -> None:
    """Write text to a file, or print it if there is none; UsageError if it cannot be written."""
    if output is None:
        typer.echo(text, nl=False)
        return
    write_file(text, output, '--output')


def write_file(text: str, path: Path, option: str) -> None:
    """Write text to the file of an option; UsageError if it cannot be written."""
    try:
        write_text(path, text)
    except NotWrittenError as error:
        raise UsageError(f'{option} {path}: cannot be written ({error.strerror})') from None


def printable(text: str) -> str:
    """Return text with `?` for bytes of a file name that cannot be decoded."""
    return text.encode('utf-8', 'replace').decode()
