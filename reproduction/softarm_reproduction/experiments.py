"""Data of the experiments that `softarm reproduce` shows: the paper's numbers and ours."""

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
    One number of the paper and ours, both in `unit`.

    `paper` is None if the paper does not print it; `ours` is None if it is not reproduced.
    """

    quantity: str
    unit: str
    paper: float | None
    ours: float | None

    @property
    def ratio(self) -> float | None:
        """Return ours / paper, or None if either is missing or the paper's number is zero."""
        if self.paper is None or self.ours is None or self.paper == 0.0:
            return None
        return self.ours / self.paper


@dataclass(frozen=True)
class Table:
    """Results without a counterpart in the paper: headings and rows of text."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Picture:
    """A figure: file stem, caption, and a function that draws it into an empty Figure."""

    name: str
    caption: str
    draw: Callable[[Figure], None]


@dataclass(frozen=True)
class Experiment:
    """
    One experiment of a paper with our results.

    Attributes
    ----------
    title : str
        The paper's name of the experiment, with its figure, table or section.
    basis : str
        Origin of our numbers, a key of `BASIS_TEXT`.
    text : str
        Procedure, assumptions, and reasons why a number could not be reproduced.

    """

    title: str
    basis: Basis
    text: str
    rows: tuple[Row, ...] = ()
    table: Table | None = None
    pictures: tuple[Picture, ...] = ()
