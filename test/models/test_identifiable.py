import math

import pytest

from softarm_ros.models.identifiable import Parameter


@pytest.mark.parametrize(
    ('change', 'angle'),
    [('polar_x', 90.0), ('polar_y', 180.0), ('polar_x', -90.0)],
)
def test_a_part_of_a_vector_across_it_is_zero(change, angle):
    part = Parameter('bend', 'bends', ('curvature', 'angle'), change, 0.1)
    assert part.number({'curvature': 17.0, 'angle': angle}) == 0.0


def test_a_small_part_of_a_vector_is_kept():
    part = Parameter('bend', 'bends', ('curvature', 'angle'), 'polar_y', 0.1)
    number = part.number({'curvature': 17.0, 'angle': 1e-6})
    assert number == pytest.approx(17.0 * math.radians(1e-6), rel=1e-12)
