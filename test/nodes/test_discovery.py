"""
Nodes that are there already are looked for longer on a busy computer.

Only free time counts. One free moment was enough before, once two seconds were over: a second run
of a rig then found nobody in a gap between two busy spells, and was not refused.
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
def test_it_takes_until_processors_are_free_and_has_an_end(percents, over_s):
    now, answers = [100.0], iter(percents)
    discovery = Discovery(2.0, lambda: now[0], lambda: next(answers))
    while not discovery.over():
        now[0] += 0.5
    assert now[0] - 100.0 == over_s
