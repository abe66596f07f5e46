"""Formulations that share no code agree about one arm."""

import numpy as np
import pytest

from softarm_reproduction import model_comparison
from softarm_ros.models.cosserat.config import (
    CosseratConfig,
    RodSegmentConfig,
    RoundProfile,
)
from softarm_ros.models.cosserat.rod import CosseratRod
from softarm_ros.models.minimum_energy.config import BackboneConfig
from softarm_ros.models.minimum_energy.rod import MinimumEnergyRod


@pytest.fixture(scope='module')
def results():
    return {
        name: model_comparison.compare(gravity, repeats=1)
        for name, gravity in model_comparison.WEIGHTS.items()
    }


def off(shapes):
    return [model_comparison.distance_from(shape, shapes[0]) for shape in shapes]


def test_without_weight_all_models_agree(results):
    assert max(off(results['without weight'])) < 2e-5


@pytest.mark.parametrize('weight', ['hanging', 'lying'])
def test_with_weight_the_models_that_include_it_agree(results, weight):
    _, dynamics, statics, curvature, energy = off(results[weight])
    assert dynamics < 1e-4
    assert energy < 2e-5
    # Models without weight are off, by more if the weight bends the arm more.
    assert statics == pytest.approx(curvature, rel=0.01)
    assert curvature > (0.005 if weight == 'hanging' else 0.02)


def test_the_table_has_the_distances_of_every_model_and_weight(results):
    rows = model_comparison.lines(results)[1:]
    expected = [1e3 * d for shapes in results.values() for d in off(shapes)]
    assert [float(row.split()[-2]) for row in rows] == pytest.approx(expected, abs=6e-4)
    names = [(weight, shape.name) for weight, shapes in results.items() for shape in shapes]
    for row, (weight, name) in zip(rows, names):
        assert row.startswith(weight) and name in row


@pytest.mark.parametrize('force', [(0.6, 0.2, 0.0), (-0.4, 0.5, 1.0), (0.2, 0.0, -0.8)])
def test_minimum_energy_and_cosserat_rod_agree_under_the_same_load(force):
    """A force bends the Cosserat rod; holding the other rod's tip there takes the same force."""
    backbone = BackboneConfig()
    area = np.pi * backbone.diameter_m**2 / 4.0
    profile = RoundProfile(
        young_modulus_Pa=backbone.youngs_modulus_Pa,
        poisson_ratio=backbone.youngs_modulus_Pa / (2.0 * backbone.shear_modulus_Pa) - 1.0,
        density_kg_m3=backbone.mass_per_length_kg_m / area,
        radius_m=0.5 * backbone.diameter_m,
    )
    segment = RodSegmentConfig(name='rod', length_m=backbone.length_m, profile=profile)
    config = CosseratConfig(
        segments=(segment,), gravity_m_s2=(0.0, 0.0, 9.81), extensible=False, steps=40
    )
    free = CosseratRod(config).solve(np.zeros(0), force)
    assert free.converged and free.stable
    held = MinimumEnergyRod(backbone, 80).reach(free.tip[:3, 3])
    assert held.converged and held.stable
    np.testing.assert_allclose(held.tip_wrench[:3], force, atol=2e-3)
    assert np.linalg.norm(free.centerline(81) - held.positions, axis=1).max() < 1e-4
