"""Identification of chambers on the simulated arm: the give of the plant, not of the file."""

import numpy as np
import pytest

from softarm_ros.cli.identify_chambers import (
    describe_chambers,
    identify_chambers,
    measure_chambers,
)
from softarm_ros.plant.pneumatic.config import PneumaticPlantConfig
from softarm_ros.rigs.loader import load_rig

STIFFER = 1.5


@pytest.fixture(scope='module')
def found():
    """Return two identified arms, the second with stiffer walls than in the rig file."""
    results = []
    for share in (1.0, STIFFER):
        settings = [f'plant.sections[{k}].wall_share={share}' for k in (0, 1)]
        rig = load_rig('pneumatic_arm', ['plant.machine.number=0', *settings])
        results.append((rig, identify_chambers(rig, measure_chambers(rig, 0, steps=3))))
    return results


def test_the_identified_give_is_that_of_the_walls_of_the_plant(found):
    gives = []
    for rig, result in found:
        for section, give in zip(rig.plant_of(PneumaticPlantConfig).sections, result.give):
            beam = section.bending_length_m / section.bending_stiffness_N_m2
            assert 0.9 * beam < give < 1.5 * beam  # more than at rest: elongation softens
        gives.append(result.give)
    np.testing.assert_allclose(gives[0] / gives[1], STIFFER, rtol=0.15)


def test_extension_curves_rise_to_the_extension_of_the_chambers(found):
    for rig, result in found:
        sections = rig.plant_of(PneumaticPlantConfig).sections
        for section, extension in zip(sections, result.extension):
            assert np.all(np.diff(extension) > 0.0)
            assert extension[-1] == pytest.approx(np.mean(section.extension_m), rel=0.06)


def test_rms_is_within_bounds_and_the_fields_to_write_are_described(found):
    rig, result = found[1]
    assert 3e-4 < result.rms < min(3.5e-3, result.rms_before)
    text = '\n'.join(describe_chambers(rig, result))
    for name in ('proximal: extension_m', 'distal: bend_per_moment_rad_N_m', 'give_growth'):
        assert name in text
