"""Arguments and options shared by several commands, and the Typer settings of all commands."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperCommand

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


class NegativeNumbers(TyperCommand):
    """A command whose arguments may be negative numbers: only other texts with `-` are options."""

    def __init__(self, *parts: Any, **settings: Any) -> None:
        super().__init__(*parts, **settings)
        self.ignore_unknown_options = True

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse arguments; an unknown option is an error, not an argument."""
        known = {
            name for param in self.get_params(ctx) for name in (*param.opts, *param.secondary_opts)
        }
        for text in args[: args.index('--')] if '--' in args else args:
            name = text.partition('=')[0]
            if name.startswith('-') and name not in known and not _is_number(text):
                ctx.fail(f'No such option: {name}')
        return super().parse_args(ctx, args)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
