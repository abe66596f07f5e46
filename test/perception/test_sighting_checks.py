"""What a pose sensor of another package returns is checked, and the message says what is wrong."""

import numpy as np
import pytest

from softarm_ros.geometry.sightings import BodySighting, PointSighting, Sighting
from softarm_ros.perception.sensor import SensorError
from softarm_ros.perception.sighting_checks import checked_sightings

POSE, PLACE = np.eye(4), np.zeros(3)


def seen(stamp_ns=1, pose=POSE, position=PLACE):
    return [
        Sighting(
            stamp_ns, 'base', (BodySighting('tip', pose),), (PointSighting('ball', position),)
        )
    ]


def test_sightings_are_returned_as_they_are():
    for right in ([], seen(), seen(np.int64(5))):
        assert checked_sightings(right, 'sensor Eye') is right


@pytest.mark.parametrize(
    ('answer', 'said'),
    [
        (None, 'returned None; expected a list of sightings'),
        (tuple(seen()), r'(?s:returned \(Sighting.*); expected a list of sightings'),
        (['tip'], r"returned 'tip' \(str\); expected a Sighting"),
        (seen(1.5), r'returned stamp_ns 1.5 \(float\); expected whole ns'),
        (seen('1'), r"returned stamp_ns '1' \(str\); expected whole ns"),
        (seen(pose=POSE[:3]), "returned pose of 'tip' .*; expected 4 x 4 finite numbers"),
        (seen(pose=POSE * np.nan), "returned pose of 'tip' .*nan.*; expected 4 x 4 finite"),
        (seen(position=[0, 0, 0]), r"returned position of 'ball' .*\(list\); expected 3"),
    ],
)
def test_a_wrong_answer_is_named_with_its_value(answer, said):
    with pytest.raises(SensorError, match=f'^sensor Eye {said}'):
        checked_sightings(answer, 'sensor Eye')
