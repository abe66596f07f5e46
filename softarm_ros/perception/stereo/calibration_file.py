"""
The calibration file of a pair of cameras, with the quality of the calibration.

It is YAML, in one format with a version. `softarm calibrate` writes it, the driver reads it. Every
part except `format` and `version` may be missing until it is calibrated.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field, ValidationError, ValidationInfo, field_validator
from ruamel.yaml import YAML, YAMLError

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.configs import ConfigBlock, Finite, NonNegative, Positive, first_mistake
from softarm_ros.geometry.poses import rows_from_transforms, transforms_from_rows
from softarm_ros.perception.stereo.boards import Board
from softarm_ros.perception.stereo.camera import Camera, CameraError
from softarm_ros.perception.stereo.cameras import StereoCameras
from softarm_ros.perception.stereo.window import FlatWindow
from softarm_ros.whole_file import whole_file

FORMAT: Literal['softarm_ros cameras'] = 'softarm_ros cameras'
VERSION: Literal[1] = 1

Vector = tuple[Finite, Finite, Finite]
Quaternion = tuple[Finite, Finite, Finite, Finite]
Pixels = tuple[int, int]
_BASELINE = 1e-3  # largest share by which two notes of one distance may differ: rounded digits
_UNIT = 1e-3  # tolerance of the norm of a quaternion written with few digits


class PoseBlock(ConfigBlock):
    """A pose."""

    position_m: Vector
    quaternion_xyzw: Quaternion

    @field_validator('quaternion_xyzw')
    @classmethod
    def _rotation(cls, parts: Quaternion) -> Quaternion:
        length = float(np.linalg.norm(parts))
        if abs(length - 1.0) > _UNIT:
            raise ValueError(f'length {length:g}: expected 1')
        return parts

    @classmethod
    def of(cls, transform: Array) -> PoseBlock:
        """Return the block of a transform (4, 4)."""
        row = rows_from_transforms(transform[None])[0].tolist()
        return cls(position_m=tuple(row[:3]), quaternion_xyzw=tuple(row[3:]))

    def transform(self) -> Array:
        """Return the transform (4, 4)."""
        return transforms_from_rows([[*self.position_m, *self.quaternion_xyzw]])[0]


class BoardBlock(ConfigBlock):
    """The board used for calibration."""

    kind: Literal['chessboard', 'charuco']
    columns: int = Field(ge=3)
    rows: int = Field(ge=3)
    square_m: Positive
    marker_m: NonNegative = 0.0
    dictionary: str = ''


class CameraBlock(ConfigBlock):
    """A camera and the images to which it was fitted."""

    size_px: Pixels = Field(description='width, height')
    matrix: tuple[Vector, Vector, Vector] = Field(description='fx, skew, cx; 0, fy, cy; 0, 0, 1')
    distortion: list[Finite] = Field(description='k1 k2 p1 p2 k3 (k4 k5 k6), as in OpenCV')
    rms_px: NonNegative = Field(description='reprojection error of this camera alone')
    focal_sd_px: NonNegative = 0.0
    coverage_percent: NonNegative = Field(
        description='share of the cells of the image that contain a corner'
    )
    largest_tilt_deg: NonNegative = 0.0
    image_errors_px: dict[str, NonNegative] = Field(default_factory=dict)
    outliers: list[str] = Field(default_factory=list)
    dropped: list[str] = Field(default_factory=list)

    def camera(self, name: str) -> Camera:
        """Return the camera."""
        return Camera(name, self.size_px, np.array(self.matrix), np.array(self.distortion))


class StereoBlock(ConfigBlock):
    """Relative pose of the cameras."""

    left_in_right: PoseBlock
    baseline_mm: Positive
    rms_px: NonNegative
    board_misfit_mm: NonNegative = Field(
        description='root-mean-square misfit of triangulated corners'
    )
    pair_errors_px: dict[str, NonNegative] = Field(default_factory=dict)
    outliers: list[str] = Field(default_factory=list)
    dropped: list[str] = Field(default_factory=list)

    @field_validator('baseline_mm')
    @classmethod
    def _one_distance(cls, baseline_mm: float, info: ValidationInfo) -> float:
        """Refuse a file of which only one of two notes of the distance was edited."""
        pose = info.data.get('left_in_right')  # missing if it is invalid itself
        if pose is not None:
            apart_mm = 1e3 * float(np.linalg.norm(pose.position_m))
            if abs(apart_mm - baseline_mm) > _BASELINE * baseline_mm:
                raise ValueError(
                    f'expected {apart_mm:.6g} mm, the length of left_in_right.position_m'
                )
        return baseline_mm


class BaseBlock(ConfigBlock):
    """Pose of the arm's base."""

    base_in_left: PoseBlock
    source: Literal['board', 'markers']
    rms_mm: NonNegative
    errors_mm: dict[str, NonNegative] = Field(default_factory=dict)


class WindowBlock(ConfigBlock):
    """A flat window between both cameras and the arm."""

    normal_in_left: Vector = Field(description='unit vector from the air into the water')
    distance_m: NonNegative = Field(
        description="distance of the dry face from the left camera's centre"
    )
    thickness_m: NonNegative
    air: float = 1.0003
    glass: float = 1.49
    water: float = 1.333
    rms_px: NonNegative | None = Field(
        default=None, description='reprojection error, if calibrated'
    )

    def window(self) -> FlatWindow:
        """Return the window."""
        fields = self.model_dump(exclude={'normal_in_left', 'rms_px'})
        return FlatWindow(np.array(self.normal_in_left), **fields)


class CalibrationFile(ConfigBlock):
    """Content of the calibration file."""

    format: Literal['softarm_ros cameras'] = FORMAT
    version: Literal[1] = VERSION
    created: str = ''
    made_up: bool = Field(
        default=False, description='describes emulated cameras; not valid for real ones'
    )
    board: BoardBlock | None = None
    cameras: dict[Literal['left', 'right'], CameraBlock] = Field(default_factory=dict)
    stereo: StereoBlock | None = None
    base: BaseBlock | None = None
    window: WindowBlock | None = None

    def stereo_cameras(self) -> StereoCameras:
        """
        Return the calibrated pair.

        Raises
        ------
        CameraError
            If the cameras were not calibrated as a pair yet.

        """
        if self.stereo is None or {'left', 'right'} - self.cameras.keys():
            raise CameraError(
                'the calibration file has no pair of cameras: run softarm calibrate stereo'
            )
        return StereoCameras(
            self.cameras['left'].camera('left'),
            self.cameras['right'].camera('right'),
            self.stereo.left_in_right.transform(),
            None if self.base is None else self.base.base_in_left.transform(),
            None if self.window is None else self.window.window(),
        )


def board_block(board: Board) -> BoardBlock:
    """Return the block that describes a board."""
    marked = board.kind == 'charuco'
    return BoardBlock(
        kind=board.kind,
        columns=board.columns,
        rows=board.rows,
        square_m=board.square_m,
        marker_m=board.marker_m if marked else 0.0,
        dictionary=board.dictionary if marked else '',
    )


def read_calibration(path: Path) -> CalibrationFile:
    """
    Read a calibration file.

    Raises
    ------
    CameraError
        If the file is missing or invalid; the message names file, field and expected value.

    """
    try:
        data = YAML(typ='safe').load(path.read_text(encoding='utf-8'))
    except OSError as error:
        raise CameraError(f'{path}: {error.strerror}: run softarm calibrate stereo') from None
    except (YAMLError, UnicodeDecodeError) as error:
        raise CameraError(f'{path}: not YAML: {" ".join(str(error).split())}') from None
    if not isinstance(data, dict) or data.get('format') != FORMAT:
        raise CameraError(f'{path}: not a calibration file: expected format: {FORMAT}')
    try:
        found = CalibrationFile.model_validate(data)
        for side, block in found.cameras.items():
            block.camera(side)
        if found.window is not None:
            found.window.window()
    except ValidationError as error:
        raise CameraError(f'{path}: {first_mistake(error)}') from None
    except CameraError as error:
        raise CameraError(f'{path}: {error}') from None
    return found


def write_calibration(path: Path, calibration: CalibrationFile) -> None:
    """Write a calibration file; replace an old one only once the new one is complete."""
    yaml = YAML()
    yaml.default_flow_style = None
    yaml.width = 99
    with whole_file(path) as part, part.open('w', encoding='utf-8') as file:
        yaml.dump(calibration.model_dump(mode='json', exclude_none=True), file)
