"""
The search for running nodes takes longer on a busy computer.

Only free time counts. Before, one free moment after two seconds was enough: a second run of a rig
found no node in a gap between two busy periods, and was not refused.
"""

import pytest

from softarm_ros.nodes.discovery import Discovery


@pytest.mark.parametrize(
    ('percents', 'over_s'),
    [
        ([20.0] * 20, 2.0),
        ([None] * 20, 2.0),
        ([100.0] * 20, 6.0),
        ([100.0] * 7 + [30.0] * 13, 5.0),  # asked every half second
        ([100.0] * 5 + [30.0] + [100.0] * 14, 6.0),
        ([20.0, 100.0] * 10, 4.0),
    ],
    ids=['quiet', 'unknown', 'busy', 'busy for 3 s', 'one free moment', 'half the time'],
)
def test_discovery_ends_after_2_s_of_free_processor_time_or_6_s_in_total(percents, over_s):
    now, answers = [100.0], iter(percents)
    discovery = Discovery(2.0, lambda: now[0], lambda: next(answers))
    while not discovery.over():
        now[0] += 0.5
    assert now[0] - 100.0 == over_s
