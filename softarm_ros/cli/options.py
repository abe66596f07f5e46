"""Arguments and options shared by several commands, and the Typer settings of all commands."""

from __future__ import annotations

from typing import Annotated, Any

import typer

RigArgument = Annotated[
    str, typer.Argument(metavar='RIG', help='Name of a built-in rig, or a .yaml file.')
]
ModelOption = Annotated[
    str | None,
    typer.Option('--model', metavar='NAME', help="Arm model; by default the rig's."),
]


# Any: typer checks whether the type is a class, and Python 3.10 takes list[str] for one.
def _settings(texts: Any) -> list[str]:
    from softarm_ros.rigs.arguments import settings_of  # imported late: help does not need it

    return settings_of(texts)


SetOption = Annotated[
    list[str],
    typer.Option(
        '--set',
        metavar='FIELD=VALUE',
        default_factory=list,
        show_default=False,
        callback=_settings,
        help='Replace a value of the rig file, as medium=water or plant.pose_sensor.delay_s=0.02; '
        'repeatable, or several separated by semicolons.',
    ),
]


def command_app() -> typer.Typer:
    """Return the Typer for one command."""
    return typer.Typer(add_completion=False, pretty_exceptions_enable=False)
