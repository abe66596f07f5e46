"""The command `softarm rigs`."""

from __future__ import annotations

import typer

from softarm_ros.cli.options import command_app

app = command_app()


@app.command(epilog='Example:  softarm rigs')
def rigs() -> None:
    """List the rigs that come with the package."""
    from softarm_ros.rigs.rig_files import list_rigs

    known = list_rigs()
    width = max((len(rig.name) for rig in known), default=0)
    for rig in known:
        typer.echo(f'{rig.name:<{width}}  {rig.description}')
