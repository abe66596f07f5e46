from softarm_ros.control.slowness import LATE_S, describe_slowness


def test_no_slowness_is_reported_if_no_node_was_late():
    assert describe_slowness({}, 0, 0, None) == ''
    assert describe_slowness({'tracker': 0.9 * LATE_S}, 800, 12, 90.0) == ''


def test_busy_processors_without_missed_cycles_are_reported_as_a_doubt():
    said = describe_slowness({'tracker': 0.01}, 800, 0, 99.0)
    assert said.startswith(
        'the computer may be too slow: tracker was late by 10 ms, 0 of 800 cycles missed, '
        'processors 99 % busy; '
    )


def test_slowness_report_names_the_latest_node_and_the_evidence():
    said = describe_slowness({'tracker': 0.05, 'servo': 0.21}, 800, 12, 99.6)
    assert said.startswith(
        'the computer is too slow: servo was late by 210 ms, 12 of 800 cycles missed, '
        'processors 100 % busy; '
    )
    assert 'processors' not in describe_slowness({'servo': 0.21}, 800, 12, None).split(';')[0]


def test_cycles_that_take_longer_than_their_period_are_reported_as_a_cause():
    late = {'servo': 0.21}
    said = describe_slowness(late, 800, 12, 60.0, computed_s=0.031, period_s=0.01)
    assert said.endswith(
        'processors 60 % busy, cycles of 10 ms computed in up to 31 ms; use a faster model or '
        'controller, lower controller.rate_hz, or end other programs, or allow real-time '
        'priority (docs/topics.md)'
    )
    quick = describe_slowness(late, 800, 12, 60.0, computed_s=0.005, period_s=0.01)
    assert quick == describe_slowness(late, 800, 12, 60.0)
