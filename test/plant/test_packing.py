"""Masses and stiffnesses of the lumped chain add up to those of the described arm."""

import numpy as np
import pytest
from plant_cases import ENDCAP, LENGTH, SECTION, plant_config, ring

from softarm_ros.plant.packing import pack_body, pack_cables

FIRST = SECTION
SECOND = SECTION | {
    'length_m': 0.07,
    'endcap_length_m': 0.01,
    'outer_radius_m': 0.012,
    'body_mass_kg': 0.03,
    'endcap_mass_kg': 0.005,
}
SEGMENTS = 5


def packed():
    config = plant_config(sections=[FIRST, SECOND], segments_per_section=SEGMENTS)
    return pack_body(config, (0.0, 0.0, 9.81))


def cylinders(section, start):
    """Return (mass, radius, from, to) of endcap, body, endcap of a section above `start`."""
    h, length, r = (section[k] for k in ('endcap_length_m', 'length_m', 'outer_radius_m'))
    cap, body = section['endcap_mass_kg'], section['body_mass_kg']
    return [
        (cap, r, start, start + h),
        (body, r, start + h, start + h + length),
        (cap, r, start + h + length, start + 2 * h + length),
    ]


def test_mass_moments_of_the_chain_match_those_of_the_straight_arm():
    body = packed()
    origins = np.cumsum(body.offset + body.segment_length)
    heights = origins + body.centre
    across, along = body.inertia.T
    mass = np.sum(body.mass)
    first = np.sum(body.mass * heights)
    second = np.sum(across + body.mass * heights**2)
    # The same integrals over thin discs, without the endcap and half segment on the mount.
    pieces = cylinders(FIRST, 0.0) + cylinders(SECOND, LENGTH + 2 * ENDCAP)
    mount = ENDCAP + 0.5 * LENGTH / SEGMENTS
    expected = np.zeros(4)
    for m, r, low, high in pieces:
        edges = np.linspace(low, high, 200001)
        z = 0.5 * (edges[1:] + edges[:-1])
        disc = np.where(z > mount, m / len(z), 0.0)
        expected += [
            disc.sum(),
            (disc * z).sum(),
            (disc * (z**2 + 0.25 * r**2)).sum(),
            (0.5 * disc * r**2).sum(),
        ]
    np.testing.assert_allclose([mass, first, second, along.sum()], expected, rtol=1e-5)


def test_each_body_has_the_mass_and_inertia_of_its_slice():
    body = packed()
    ds = LENGTH / SEGMENTS
    slice_mass = FIRST['body_mass_kg'] / SEGMENTS
    np.testing.assert_allclose(body.mass[: SEGMENTS - 1], slice_mass)
    np.testing.assert_allclose(body.centre[: SEGMENTS - 1], 0.0, atol=1e-18)
    across = slice_mass * (3 * 0.016**2 + ds**2) / 12
    np.testing.assert_allclose(body.inertia[: SEGMENTS - 1, 0], across)
    np.testing.assert_allclose(body.inertia[: SEGMENTS - 1, 1], 0.5 * slice_mass * 0.016**2)
    # Last body: half a segment and an endcap.
    assert body.mass[-1] == pytest.approx(0.03 / (2 * SEGMENTS) + 0.005)


def test_chain_has_the_length_and_compliance_of_the_arm():
    body = packed()
    total = np.sum(body.offset + body.segment_length) + body.tip_offset[0]
    assert total == pytest.approx(LENGTH + 2 * ENDCAP + 0.07 + 0.02)
    np.testing.assert_allclose(np.sum(1.0 / body.stiffness[:SEGMENTS, 0]), LENGTH / 2e-3)
    np.testing.assert_allclose(np.sum(1.0 / body.stiffness[:SEGMENTS, 2]), LENGTH / 400.0)


def test_cables_stretch_over_their_whole_length():
    config = plant_config(sections=[FIRST, SECOND], segments_per_section=SEGMENTS)
    cables = pack_cables(config, ring(2))
    proximal = 0.3 + ENDCAP + LENGTH
    distal = 0.3 + 2 * ENDCAP + LENGTH + 0.01 + 0.07
    np.testing.assert_allclose(7000.0 / cables.stiffness, [proximal] * 3 + [distal] * 3)
    np.testing.assert_array_equal(cables.first, [0] * 3 + [SEGMENTS] * 3)
    np.testing.assert_allclose(cables.foundation[3:], 31e3 * 0.07 / SEGMENTS)
