"""Nodes that are there already are looked for longer on a busy computer."""

import pytest

from softarm_ros.nodes.discovery import Discovery


@pytest.mark.parametrize(
    ('percents', 'over_s'),
    [
        ([20.0] * 20, 2.0),
        ([None] * 20, 2.0),
        ([100.0] * 20, 6.0),
        ([100.0] * 7 + [30.0] * 13, 3.5),  # asked every half second
    ],
    ids=['quiet', 'unknown', 'busy', 'busy for 3 s'],
)
def test_it_takes_until_processors_are_free_and_has_an_end(percents, over_s):
    now, answers = [100.0], iter(percents)
    discovery = Discovery(2.0, lambda: now[0], lambda: next(answers))
    while not discovery.over():
        now[0] += 0.5
    assert now[0] - 100.0 == over_s
