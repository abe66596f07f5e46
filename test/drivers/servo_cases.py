"""Register maps for the tests of the servo driver and of the emulated drives."""

from softarm_ros.drivers.servo_config import ServoConfig

REGISTERS = {
    'control_word': {'address': 0, 'type': 'uint16'},
    'torque_command': {'address': 1, 'type': 'int16', 'scale': 0.001},
    'status_word': {'address': 16, 'type': 'uint16'},
    'torque': {'address': 17, 'type': 'int16', 'scale': 0.001},
    'speed': {'address': 18, 'type': 'int32', 'scale': 0.0001},
    'position': {'address': 20, 'type': 'int32', 'scale': 0.0001},
    'fault_code': {'address': 22, 'type': 'uint16'},
}


def servo_config(port=502, axes=6, per_axis_unit=False, **changes):
    """Return six axes of one controller, 32 registers apart, or with one unit per axis."""
    fields = {
        'host': '127.0.0.1',
        'port': port,
        'registers': REGISTERS,
        'command_timeout_s': 0.15,
        'axes': [
            {
                'name': f'axis_{i + 1}',
                'unit': i + 1 if per_axis_unit else 1,
                'base': 0 if per_axis_unit else 32 * i,
                'torque_limit_N_m': 2.5,
                'speed_limit_rad_s': 100.0,
                'reversed': i == 1,
            }
            for i in range(axes)
        ],
    }
    return ServoConfig.model_validate(fields | changes)
