"""Text that a command prints, or writes to the file of `--output`."""

from __future__ import annotations

from pathlib import Path

import typer

from softarm_ros.cli.cli_errors import UsageError


def write_or_print(text: str, output: Path | None) -> None:
    """Write text to a file, or print it without one; UsageError if it cannot be written."""
    if output is None:
        typer.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding='utf-8')
    except OSError as error:
        raise UsageError(f'--output {output}: cannot be written ({error.strerror})') from None
