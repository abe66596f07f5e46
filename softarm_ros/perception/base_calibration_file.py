"""File with the pose of the base in the frame of a sensor."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from pydantic import Field, ValidationError
from ruamel.yaml import YAML

from softarm_ros.geometry.arrays import Array, finite_array
from softarm_ros.geometry.configs import ConfigBlock, Finite, NonNegative, first_mistake
from softarm_ros.perception.base_frame import BaseCalibration
from softarm_ros.perception.captured import MAX_RANGE_M
from softarm_ros.perception.sensor import SensorError
from softarm_ros.whole_file import whole_file

VERSION = 1
_ROUNDED = 1e-6  # tolerance of entries with few digits, as a share of the largest
Row = list[Finite]


class _Fields(ConfigBlock):
    version: int = Field(ge=VERSION, le=VERSION)
    X_sensor_base: list[Row] = Field(min_length=4, max_length=4)
    covariance: list[Row] = Field(min_length=6, max_length=6)
    rms_m: NonNegative


def too_far(pose: Array) -> str:
    """Return why no sensor sees a base at this pose (4, 4), or ''."""
    away_m = float(np.linalg.norm(pose[:3, 3]))
    if away_m <= MAX_RANGE_M:
        return ''
    return f'the base is {away_m:.4g} m away (limit {MAX_RANGE_M:g} m)'


def read_base(path: str | Path) -> BaseCalibration:
    """
    Read a calibration.

    Raises
    ------
    SensorError
        If the file is missing or its content is not a pose; the message names file and field.

    """
    where = Path(path).expanduser()
    try:
        data = YAML(typ='safe').load(where.read_text(encoding='utf-8'))
        if not isinstance(data, dict):
            raise ValueError(f'expected version: {VERSION}, X_sensor_base, ...')
        if 'format' in data:
            raise ValueError(
                f'it is a calibration of cameras: expected version: {VERSION}, X_sensor_base'
            )
        fields = _Fields.model_validate(data)
        pose = finite_array(fields.X_sensor_base, (4, 4), 'X_sensor_base')
        covariance = finite_array(fields.covariance, (6, 6), 'covariance')
        if not np.allclose(pose[:3, :3].T @ pose[:3, :3], np.eye(3), atol=1e-6):
            raise ValueError('X_sensor_base: not a rotation (limit 1e-6)')
        if np.linalg.det(pose[:3, :3]) < 0.0:
            raise ValueError('X_sensor_base: it mirrors: expected right-handed axes')
        if not np.array_equal(pose[3], [0.0, 0.0, 0.0, 1.0]):
            raise ValueError('X_sensor_base: expected the last row 0 0 0 1')
        if far := too_far(pose):
            raise ValueError(f'X_sensor_base: {far}: expected metres')
        _require_covariance(covariance)
    except OSError as error:
        raise SensorError(
            f'base_calibration = {str(where)!r}: {error.strerror}; write it with '
            'softarm calibrate base --seen'
        ) from error
    except ValidationError as error:
        raise SensorError(f'base_calibration = {str(where)!r}: {first_mistake(error)}') from error
    except Exception as error:  # from YAML or number parsing
        why = ' '.join(str(error).split())
        raise SensorError(f'base_calibration = {str(where)!r}: {why}') from error
    return BaseCalibration(pose, covariance, fields.rms_m)


def _require_covariance(matrix: Array) -> None:
    """Raise ValueError if a matrix is no covariance."""
    largest = float(np.abs(matrix).max())
    if np.abs(matrix - matrix.T).max() > _ROUNDED * largest:
        raise ValueError('covariance: expected a symmetric matrix')
    least = float(np.linalg.eigvalsh(matrix)[0])
    if least < -_ROUNDED * largest:
        raise ValueError(f'covariance: its smallest eigenvalue is {least:.3g}: expected 0 or more')


def write_base(path: str | Path, calibration: BaseCalibration) -> None:
    """Write a calibration."""
    yaml = YAML()
    yaml.default_flow_style = None
    with whole_file(Path(path).expanduser()) as part, part.open('w', encoding='utf-8') as file:
        yaml.dump(
            {
                'version': VERSION,
                'X_sensor_base': calibration.pose.tolist(),
                'covariance': calibration.covariance.tolist(),
                'rms_m': float(calibration.rms_m),
            },
            file,
        )
