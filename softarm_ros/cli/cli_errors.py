"""How commands fail: with one line for a user's mistake, with a traceback for a defect of ours."""

from __future__ import annotations

EXIT_BAD_INPUT = 2

# Errors of the input, not of the program. Given by name, to avoid imports.
USER_ERRORS = frozenset(
    {
        'softarm_ros.control.limits.LimitError',
        'softarm_ros.drivers.problems.DriverError',
        'softarm_ros.emulation.emulated_arm.EmulationError',
        'softarm_ros.geometry.kernels.KernelCacheError',
        'softarm_ros.geometry.parts.PartError',
        'softarm_ros.models.arm_model.ModelError',
        'softarm_ros.home_path.HomeFolderError',
        'softarm_ros.nodes.bag_writer.BagError',
        'softarm_ros.nodes.node_errors.RefusedError',
        'softarm_ros.plant.errors.PlantError',
        'softarm_ros.perception.stereo.camera.CameraError',
        'softarm_ros.rigs.errors.RigError',
        'softarm_ros.runtime.addresses.NoDevicesYetError',
        'softarm_ros.runtime.assembly.TrajectoryError',
        'softarm_ros.control.controller.AnswerError',
        'softarm_ros.runtime.task_plan.TaskError',
        'softarm_ros.cli.cli_errors.UsageError',
        'softarm_ros.cli.instance_lock.AlreadyRunningError',
        'softarm_ros.cli.run_command.InputError',
        'softarm_ros.whole_file.NotWrittenError',
    }
)


class UsageError(ValueError):
    """A command got an argument it cannot use; the message says what it expected."""


def is_user_error(error: BaseException) -> bool:
    """Return whether the user can fix the cause of an exception."""
    return any(f'{c.__module__}.{c.__qualname__}' in USER_ERRORS for c in type(error).__mro__)


def number_of(text: str) -> float:
    """Return the number in a text; ValueError if it has none, or `_`, which Python accepts."""
    if '_' in text:
        raise ValueError(text)
    return float(text)


def parse_numbers(text: str, option: str, expected: str, count: int | None = None) -> list[float]:
    """
    Return the numbers of a text such as `1,2.5,-3`.

    Raises
    ------
    UsageError
        If a part is not a finite number, or there are not `count` of them.

    """
    parts = [part.strip() for part in text.split(',')]
    values = []
    for part in parts:
        try:
            value = number_of(part)
        except ValueError:
            raise UsageError(f'{option} {text!r}: {part!r} is not a number; {expected}') from None
        if value - value != 0.0:
            raise UsageError(f'{option} {text!r}: {part!r} is not finite; {expected}')
        values.append(value)
    if count is not None and len(values) != count:
        raise UsageError(f'{option} {text!r}: {len(values)} numbers; {expected}')
    return values
