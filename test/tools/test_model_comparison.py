"""Formulations that share no code say the same about one arm."""

import numpy as np
import pytest

from softarm_ros.tools import model_comparison


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
def test_with_weight_those_that_know_it_agree(results, weight):
    _, dynamics, statics, curvature, energy = off(results[weight])
    assert dynamics < 1e-4
    assert energy < 2e-5
    # ... and those that do not know it are off, the more the more the weight bends the arm.
    assert statics == pytest.approx(curvature, rel=0.01)
    assert curvature > (0.005 if weight == 'hanging' else 0.02)


def test_table_and_picture(results, tmp_path):
    table = model_comparison.lines(results)
    assert len(table) == 1 + 3 * 5
    assert all(np.isfinite(float(line.split()[-1])) for line in table[1:])
    assert model_comparison.draw(results, tmp_path / 'm.png').read_bytes().startswith(b'\x89PNG')
