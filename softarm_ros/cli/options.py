"""Arguments and options that several commands take, and what all commands have in common."""

from __future__ import annotations

from typing import Annotated

import typer

RigArgument = Annotated[
    str, typer.Argument(metavar='RIG', help='Name of a built-in rig, or a .yaml file.')
]
ModelOption = Annotated[
    str | None,
    typer.Option('--model', metavar='NAME', help="Arm model; the rig's default without it."),
]

SetOption = Annotated[
    list[str] | None,
    typer.Option(
        '--set',
        metavar='FIELD=VALUE',
        help='Replace a value of the rig file, as medium=water or plant.pose_sensor.delay_s=0.02.',
    ),
]


def command_app() -> typer.Typer:
    """Return the Typer of one command."""
    return typer.Typer(add_completion=False, pretty_exceptions_enable=False)
