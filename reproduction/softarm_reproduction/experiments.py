"""What `softarm reproduce` shows of an arm: experiments of its paper beside ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from matplotlib.figure import Figure

Basis = Literal['prediction', 'simulation', 'not reproduced']
BASIS_TEXT: dict[Basis, str] = {
    'prediction': 'prediction of the model',
    'simulation': 'simulation of a plant with assumed parameters',
    'not reproduced': 'not reproduced',
}


@dataclass(frozen=True)
class Row:
    """
    One number of the paper beside ours, both in `unit`.

    `paper` or `ours` is None where there is none: not printed in the paper, or not reproduced.
    """

    quantity: str
    unit: str
    paper: float | None
    ours: float | None

    @property
    def ratio(self) -> float | None:
        """Ours by the paper's, or None where one of them is missing or the paper's is zero."""
        if self.paper is None or self.ours is None or self.paper == 0.0:
            return None
        return self.ours / self.paper


@dataclass(frozen=True)
class Table:
    """Numbers of ours that the paper has no counterpart for: headings, and rows of text."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Picture:
    """A figure: its file's stem, what it shows, and what draws it into an empty Figure."""

    name: str
    caption: str
    draw: Callable[[Figure], None]


@dataclass(frozen=True)
class Experiment:
    """
    One experiment.

    Attributes
    ----------
    title : str
        As the paper calls it, with its figure, table or section.
    basis : str
        Where our numbers come from.
    text : str
        What was done, what is assumed, why something could not be reproduced.

    """

    title: str
    basis: Basis
    text: str
    rows: tuple[Row, ...] = ()
    table: Table | None = None
    pictures: tuple[Picture, ...] = ()
