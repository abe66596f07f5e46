"""The drawing of an arm: a closed tube, frames without twist, and strands."""

import numpy as np
import pytest

from softarm_ros.models.arm_model import Shape
from softarm_ros.models.section_points import sections_along
from softarm_ros.rigs.drawing import AROUND, centreline_of, strand_lines, strand_points, tube
from softarm_ros.rigs.loader import list_rigs, load_rig
from softarm_ros.rigs.outline import Strand


def arc(angle, n=41, direction=0.0, length=0.3):
    """Return points of a circular arc of an arm that starts along z."""
    s = np.linspace(0.0, length, n)
    bend = s * angle / length
    radius = length / angle
    flat = np.stack([radius * (1 - np.cos(bend)), radius * np.sin(bend)], axis=1)
    out = np.array([np.cos(direction), np.sin(direction), 0.0])
    return flat[:, :1] * out + flat[:, 1:] * np.array([0.0, 0.0, 1.0])


def shape_of(points):
    tip = np.eye(4)
    tip[:3, 3] = points[-1]
    return Shape(tip, tip[None], np.zeros(1), lambda n: points)


@pytest.mark.parametrize('direction', [0.0, 0.7, 2.0, np.pi / 2])
def test_frames_along_an_arc_have_no_twist(direction):
    line = centreline_of(shape_of(arc(1.9, direction=direction)), 41)
    normal = np.array([-np.sin(direction), np.cos(direction), 0.0])
    x, y = line.across[:, 0], line.across[:, 1]
    assert np.einsum('na,na->n', x, y) == pytest.approx(0.0, abs=1e-12)
    assert np.linalg.norm(line.across, axis=2) == pytest.approx(1.0)
    # Without twist, the share of the normal in each axis stays as it was at the base.
    assert x @ normal == pytest.approx(x[0] @ normal, abs=1e-9)
    assert y @ normal == pytest.approx(y[0] @ normal, abs=1e-9)


def test_tube_is_closed_and_has_the_given_radius():
    line = centreline_of(shape_of(arc(1.2)), 41)
    vertices, triangles = tube(line, (0.02,))
    edges = np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])
    ways, count = np.unique(edges, axis=0, return_counts=True)
    assert np.all(count == 1)  # every edge once in each direction: closed and oriented
    assert {tuple(edge) for edge in ways} == {tuple(edge[::-1]) for edge in ways}
    corners = vertices[triangles]
    volume = np.sum(np.einsum('ta,ta->t', corners[:, 0], np.cross(corners[:, 1], corners[:, 2])))
    polygon = 0.5 * AROUND * np.sin(2.0 * np.pi / AROUND)
    assert volume / 6.0 == pytest.approx(polygon * 0.02**2 * 0.3, rel=2e-3)  # Pappus
    rings = vertices[:-2].reshape(41, AROUND, 3)
    away = np.linalg.norm(rings - line.points[:, None], axis=2)
    assert away == pytest.approx(0.02)


@pytest.mark.parametrize('name', [info.name for info in list_rigs()])
def test_strands_of_every_arm_run_within_the_radius_of_its_body(name):
    rig = load_rig(name)
    model = rig.model()
    line = centreline_of(model.shape_of(model.rest_configuration), 61)
    radii = rig.body_radii_m()
    assert set(line.section) == set(range(len(radii)))
    strands = rig.arm.strands()
    assert {strand.actuator for strand in strands} == set(range(len(rig.actuators)))
    for strand in strands:
        points = strand_points(line, strand)
        on = line.points[line.section == strand.section]
        away = np.linalg.norm(points - on, axis=1)
        wanted = np.abs(np.linspace(strand.radius_m, strand.end_radius_m, len(on)))
        assert away == pytest.approx(wanted, abs=1e-12)
        assert np.max(away) <= radii[strand.section] * 1.001


def test_strands_end_at_the_angles_of_their_cables_on_the_bent_arm():
    rig = load_rig('cable_arm')
    shape = rig.model().shape_of(np.array([0.5, 0.5, -0.7, 0.2]))
    strands = rig.arm.strands()
    lines = strand_lines(centreline_of(shape, 201), strands, rig.body_radii_m())
    for actuator, strand, line in zip(rig.actuators, strands, lines):
        tip = shape.section_tips[strand.section]
        x, y, z = tip[:3, :3].T @ (line[-1] - tip[:3, 3])
        off = np.rad2deg(np.arctan2(y, x)) - actuator.angle_deg
        assert (off + 180.0) % 360.0 - 180.0 == pytest.approx(0.0, abs=0.5)
        assert np.hypot(x, y) == pytest.approx(1.06 * rig.body_radii_m()[strand.section])
        assert z == pytest.approx(0.0, abs=1e-3)


def test_a_strand_runs_at_its_angle_and_radii():
    line = centreline_of(shape_of(np.linspace([0, 0, 0], [0, 0, 0.3], 21)), 21)
    points = strand_points(line, Strand(0, 0, np.pi / 2, 0.01, -0.01))
    assert points[0] == pytest.approx([0.0, 0.01, 0.0])
    assert points[-1] == pytest.approx([0.0, -0.01, 0.3])


@pytest.mark.parametrize('ends_m', [[0.2, 0.2001, 0.3], [0.299, 0.2995, 0.3], [0.0001, 0.1, 0.3]])
def test_a_section_shorter_than_the_spacing_of_points_is_drawn(ends_m):
    tips = np.tile(np.eye(4), (3, 1, 1))
    tips[:, 2, 3] = ends_m
    line = np.linspace([0, 0, 0], [0, 0, 0.3], 31)
    section = sections_along(line, Shape(tips[-1], tips, np.zeros(1), lambda n: line))
    assert set(section) == {0, 1, 2}
    assert np.all(np.diff(section) >= 0)
