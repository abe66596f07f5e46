"""Files of learned residuals, beside the rig files that name them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field, ValidationError, model_validator

from softarm_ros.geometry.configs import ConfigBlock, Finite, NonNegative, Positive
from softarm_ros.rigs.errors import RigError

if TYPE_CHECKING:
    from softarm_ros.models.residual import Residual

Numbers = tuple[Finite, ...]
Rows = tuple[Numbers, ...]
_ROUNDING = 1e-6  # of a covariance, by the digits of its file


class ResidualConfig(ConfigBlock):
    """Learned errors of the model, which correct its shapes."""

    file: Annotated[str, Field(min_length=1)] = Field(
        description='beside the rig file, as `softarm identify --residual` writes it'
    )


class ResidualFile(ConfigBlock):
    """Contents of a residual file; see `models.residual`."""

    learned_from: str
    model: str
    actuators: tuple[str, ...]
    sections: tuple[str, ...]
    features: tuple[str, ...] = Field(min_length=1)
    groups: tuple[int, ...]
    middle: Numbers
    half: tuple[Positive, ...]
    mean: Numbers
    scale: tuple[NonNegative, ...]
    weights: Rows
    covariance: Rows
    noise: tuple[NonNegative, ...]
    reach: Positive
    left: Positive

    @model_validator(mode='after')
    def _fits_together(self) -> ResidualFile:
        count, outputs, size = len(self.actuators), 6 * len(self.sections), len(self.mean) + 1
        expected = {
            'groups': count, 'middle': count, 'half': count, 'scale': size - 1,
            'weights': size, 'covariance': size, 'noise': outputs,
        }  # fmt: skip
        for name, length in expected.items():
            if len(getattr(self, name)) != length:
                raise ValueError(
                    f'{name} has {len(getattr(self, name))} entries, expected {length}'
                )
        if any(len(row) != outputs for row in self.weights):
            raise ValueError(f'rows of weights: expected {outputs} entries')
        if any(len(row) != size for row in self.covariance):
            raise ValueError(f'rows of covariance: expected {size} entries')
        covariance = np.array(self.covariance)
        least = float(np.linalg.eigvalsh(0.5 * (covariance + covariance.T))[0])
        if least < -_ROUNDING * float(np.abs(covariance).max()):
            raise ValueError(
                f'covariance: smallest eigenvalue {least:.3g}; expected none below 0 (learn it '
                'again: softarm identify --residual)'
            )
        return self

    def residual(self) -> Residual:
        """Return the residual in the form that models use."""
        from softarm_ros.models.residual import Residual

        return Residual(
            self.features, len(self.sections), self.groups, np.array(self.middle),
            np.array(self.half), np.array(self.mean), np.array(self.scale),
            np.array(self.weights), np.array(self.covariance), np.array(self.noise), self.reach,
            self.left,
        )  # fmt: skip


def read_residual(
    path: Path, model: str, actuators: tuple[str, ...], sections: tuple[str, ...]
) -> Residual:
    """
    Return the residual of a file, for a model of an arm with these actuators and sections.

    Raises
    ------
    RigError
        If the file cannot be read, is invalid, or belongs to another arm or model.

    """
    try:
        data: Any = json.loads(path.read_text(encoding='utf-8'))
        found = ResidualFile.model_validate(data)
    except (OSError, UnicodeDecodeError) as error:
        raise RigError(str(path), f'cannot be read ({error})') from None
    except ValidationError as error:
        first = error.errors()[0]
        place = '.'.join(str(part) for part in first['loc'])
        raise RigError(str(path), f'{place or "content"}: {first["msg"]}') from None
    except (ValueError, RecursionError) as error:
        raise RigError(str(path), f'is not JSON: {error}') from None
    for what, own, rigs in (
        ('actuators', found.actuators, actuators),
        ('sections', found.sections, sections),
    ):
        if own != rigs:
            raise RigError(str(path), f'{what} {", ".join(own)}; the rig has {", ".join(rigs)}')
    if found.model != model:
        raise RigError(
            str(path),
            f'learned for model {found.model}; the rig has {model}, whose errors are others: '
            'remove `residual`, or learn it again',
        )
    if not set(found.groups) <= set(range(len(sections))):
        raise RigError(
            str(path), f'groups = {list(found.groups)}: expected 0 to {len(sections) - 1}'
        )
    residual = found.residual()
    try:
        width = residual.remembered(residual.middle[None], None).shape[1]
    except ValueError as error:  # of a version to come, perhaps
        raise RigError(str(path), f'features: {error}') from None
    if width != len(found.mean):
        raise RigError(
            str(path),
            f'features {", ".join(found.features)} are {width} numbers; mean has '
            f'{len(found.mean)} entries',
        )
    return residual
