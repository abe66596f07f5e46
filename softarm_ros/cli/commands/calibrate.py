"""The command `softarm calibrate`."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from softarm_ros.cli.options import command_app

app = command_app()


class What(str, Enum):
    """Subject of the calibration."""

    camera = 'camera'
    stereo = 'stereo'
    base = 'base'
    window = 'window'
    board = 'board'


class BoardKind(str, Enum):
    """Kind of the board."""

    chessboard = 'chessboard'
    charuco = 'charuco'


_FARTHEST_MM, _LARGEST_DEG = 10_000.0, 360.0  # of a board, from the base of the arm
SOURCE = 'FOLDER|GLOB|SOURCE'
_AT_BASE = '0,0,0,0,0,0'


@app.command(
    epilog='Examples:  softarm calibrate board --columns 9 --rows 6 --square-mm 20 --output '
    'board.png   |   softarm calibrate stereo --left "calib/left_*.png" --right '
    '"calib/right_*.png" --columns 9 --rows 6 --square-mm 5.5 --output cameras.yaml   |   softarm '
    'calibrate base --calibration cameras.yaml --left base_l.png --right base_r.png --columns 9 '
    '--rows 6 --square-mm 5.5'
)
def calibrate(
    what: Annotated[
        What,
        typer.Argument(
            help='camera: lens; stereo: both cameras; base: pose of '
            'the arm; window: of a tank; board: a picture to print.'
        ),
    ],
    left: Annotated[
        str | None,
        typer.Option(
            metavar=SOURCE,
            help='Images of the left camera: files, or live from '
            '/dev/video0, http://..., "... ! appsink".',
        ),
    ] = None,
    right: Annotated[
        str | None,
        typer.Option(metavar=SOURCE, help='Images of the right camera, with the same numbers.'),
    ] = None,
    board: Annotated[BoardKind, typer.Option(help='Kind of the board.')] = BoardKind.chessboard,
    columns: Annotated[
        int, typer.Option(help='Inner corners of a chessboard, squares of a ChArUco board.')
    ] = 9,
    rows: Annotated[int, typer.Option(help='The same in the other direction.')] = 6,
    square_mm: Annotated[float, typer.Option(help='Side of a square, as measured.')] = 20.0,
    marker_mm: Annotated[float, typer.Option(help='Side of a marker (ChArUco).')] = 15.0,
    dictionary: Annotated[
        str, typer.Option(help='Dictionary of the markers (ChArUco).')
    ] = '4X4_250',
    output: Annotated[
        Path, typer.Option(metavar='FILE', help='Calibration file, or picture of the board.')
    ] = Path('cameras.yaml'),
    calibration: Annotated[
        Path | None,
        typer.Option(
            metavar='FILE.yaml',
            help='Known calibration: for stereo the lenses, '
            'which are kept; for base and window the cameras.',
        ),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(metavar='FILE.png', help='Picture to write; by default beside the output.'),
    ] = None,
    rational: Annotated[
        bool, typer.Option(help='Lens model with k4 to k6, for wide angles.')
    ] = False,
    drop_outliers: Annotated[
        bool, typer.Option(help='Leave out outlier images, and name them.')
    ] = False,
    count: Annotated[int, typer.Option(min=3, help='Live images to take.')] = 20,
    wait_s: Annotated[float, typer.Option(min=1.0, help='Longest wait for live images.')] = 300.0,
    board_at: Annotated[
        str,
        typer.Option(
            metavar='X,Y,Z,RX,RY,RZ',
            help='For base: pose of the board in the base '
            'frame, mm and rotation vector in degrees.',
        ),
    ] = _AT_BASE,
    markers: Annotated[
        Path | None,
        typer.Option(
            metavar='FILE.yaml',
            help='For base: positions of bright markers, not a board; name: \\[x, y, z] in mm.',
        ),
    ] = None,
    seen: Annotated[
        Path | None,
        typer.Option(
            metavar='FILE.yaml',
            help='For base of a tracker: the points of --markers as the tracker measures them, '
            'without images.',
        ),
    ] = None,
    threshold: Annotated[
        int, typer.Option(min=1, max=254, help='For base: least grey level of markers.')
    ] = 128,
    window: Annotated[
        str | None,
        typer.Option(metavar='DISTANCE,THICKNESS', help='For window: rough measures, mm.'),
    ] = None,
    indices: Annotated[
        str, typer.Option(metavar='AIR,GLASS,WATER', help='For window: refractive indices.')
    ] = '1.0003,1.49,1.333',
) -> None:
    """Calibrate cameras with a board, find the arm's base and the window of a tank."""
    from softarm_ros.cli import calibration as work
    from softarm_ros.cli.cli_errors import UsageError, parse_numbers
    from softarm_ros.perception.stereo.boards import Board
    from softarm_ros.whole_file import require_writable

    shown = Board(board.value, columns, rows, 1e-3 * square_mm, 1e-3 * marker_mm, dictionary)
    if what is What.board:
        require_writable(output)
        typer.echo(work.print_board(shown, output))
        return
    if output.suffix not in ('.yaml', '.yml'):
        raise UsageError(f'--output {output}: expected a name that ends in .yaml')
    images = work.Images(left, right, count, wait_s)
    if picture is not None and picture.suffix.lower() != '.png':
        raise UsageError(f'--picture {picture}: expected a name that ends in .png')
    drawn = picture or output.with_suffix('.png')
    drawings: dict[What, list[Path]] = {
        What.camera: list(images.pictures(drawn).values()),
        What.stereo: [drawn],
    }
    for path in (output, *drawings.get(what, [])):
        require_writable(path)
    if what is What.camera:
        lines = work.camera(shown, images, output, drawn, rational, drop_outliers)
    elif what is What.stereo:
        lines = work.stereo(shown, images, output, drawn, rational, drop_outliers, calibration)
    elif what is What.base and seen is not None:
        from softarm_ros.cli.tracker_base import tracker_base

        if markers is None or images.given or calibration is not None:
            raise UsageError(
                '--seen: expected --markers, and neither --left, --right nor --calibration'
            )
        _require_no_board(board_at)
        lines = tracker_base(markers, seen, output)
    elif what is What.base:
        at = parse_numbers(board_at, '--board-at', 'expected x,y,z,rx,ry,rz', 6)
        for value, limit in zip(at, (_FARTHEST_MM,) * 3 + (_LARGEST_DEG,) * 3):
            if abs(value) > limit:
                raise UsageError(
                    f'--board-at {board_at!r}: {value:g}; expected mm within +-{_FARTHEST_MM:g} '
                    f'and degrees within +-{_LARGEST_DEG:g}'
                )
        if markers is not None:
            _require_no_board(board_at)
        known = calibration or output
        lines = work.base(shown, images, known, output, at, markers, threshold)
    else:
        if window is None:
            raise UsageError('--window DISTANCE,THICKNESS is missing: measure them roughly, in mm')
        size = parse_numbers(window, '--window', 'expected distance,thickness in mm', 2)
        n = parse_numbers(indices, '--indices', 'expected air,glass,water', 3)
        lines = work.window(shown, images, calibration or output, output, size, n)
    for line in lines:
        typer.echo(line)


def _require_no_board(board_at: str) -> None:
    """Raise UsageError if a board was placed although markers are used."""
    from softarm_ros.cli.cli_errors import UsageError

    if board_at != _AT_BASE:
        raise UsageError(f'--board-at {board_at!r}: with --markers there is no board to place')
