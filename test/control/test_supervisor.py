import numpy as np
import pytest

from softarm_ros.control.command_gate import CommandGate
from softarm_ros.control.config import SupervisorConfig
from softarm_ros.control.limits import ActuatorLimits, LimitError
from softarm_ros.control.supervisor import SafetyState, Supervisor

LIMITS = ActuatorLimits(
    ('a', 'b'),
    'm',
    np.array([-0.01, -0.02]),
    np.array([0.03, 0.04]),
    np.array([0.02, 0.01]),
    np.array([0.1, 0.1]),
)
NODES = ('tracker', 'plant')


class Rig:
    """Feeds a supervisor as a healthy arm does; tests switch single inputs off."""

    def __init__(self, **options):
        self.supervisor = Supervisor(SupervisorConfig(), LIMITS, NODES, **options)
        self.now = 100.0
        self.position = np.array([0.0, 0.0, 0.2])
        self.command = np.zeros(2)
        self.actuators = np.zeros(2)  # None: no states
        self.alive = set(NODES)
        self.not_ready = {}
        self.unheard = {}
        self.feedback = True
        self.commanding = True

    def run(self, duration):
        end = self.now + duration
        while self.now < end - 1e-9:
            self.now += 0.01
            for name in self.alive:
                said = self.not_ready.get(name, ''), self.unheard.get(name, '')
                self.supervisor.on_heartbeat(name, self.now, *said)
            if self.feedback:
                self.supervisor.on_feedback(self.now, self.position)
            if self.commanding:
                self.supervisor.on_command(self.now, self.command)
            if self.actuators is not None:
                self.supervisor.on_actuator_state(self.now, self.actuators, np.zeros(2))
            status = self.supervisor.update(self.now)
        return status

    def running(self):
        self.run(0.1)
        ok, message = self.supervisor.request_start(self.now)
        assert ok, message
        return self


def test_supervisor_waits_for_every_node_and_runs_on_start_request():
    rig = Rig()
    rig.alive = {'tracker'}
    status = rig.run(0.2)
    assert status.state is SafetyState.WAITING
    assert status.reason == 'waiting for plant'
    assert not status.motion_allowed
    assert rig.supervisor.request_start(rig.now)[0] is False
    rig.alive = set(NODES)
    assert rig.run(0.05).state is SafetyState.READY
    assert rig.supervisor.request_start(rig.now) == (True, 'running')
    assert rig.run(1.0).motion_allowed


def test_an_emergency_stop_before_a_node_was_heard_names_the_node():
    rig = Rig()
    rig.alive = {'tracker'}
    rig.run(0.1)
    rig.supervisor.request_estop(rig.now)
    refused = rig.supervisor.request_reset(rig.now)
    assert refused == (False, 'still faulty: nothing received from node plant yet')


def test_supervisor_waits_without_time_limit_and_names_the_missing_node():
    rig = Rig()
    rig.alive = {'tracker'}
    status = rig.run(600.0)
    assert status.state is SafetyState.WAITING
    assert status.reason == 'waiting for plant'
    rig.alive = set(NODES)
    assert rig.run(0.05).state is SafetyState.READY


@pytest.mark.parametrize(
    ('breakage', 'reason'),
    [
        (lambda r: setattr(r, 'feedback', False), 'feedback stale'),
        (lambda r: setattr(r, 'commanding', False), 'command stale'),
        (lambda r: setattr(r, 'position', np.array([0, np.nan, 0])), 'not finite'),
        (lambda r: setattr(r, 'position', np.array([0, 0.2, 0.2])), 'jumped by 200.0 mm'),
        (lambda r: setattr(r, 'command', np.array([0.0, 0.05])), 'b = 0.05 m outside'),
        (lambda r: setattr(r, 'command', np.array([np.inf, 0.0])), 'a = inf'),
        (lambda r: setattr(r, 'command', np.zeros(3)), 'shape (3,)'),
        (lambda r: setattr(r, 'actuators', np.array([np.nan, 0])), 'actuator position'),
        (lambda r: r.supervisor.request_estop(r.now), 'emergency stop'),
    ],
)
def test_every_fault_stops_motion_within_200_ms_is_named_and_latched(breakage, reason):
    rig = Rig().running()
    breakage(rig)
    status = rig.run(0.2)
    assert status.state is SafetyState.FAULT
    assert not status.motion_allowed
    assert reason in status.reason
    first = status.reason
    # Latched: good data does not clear the fault, and start is refused.
    rig.alive, rig.feedback, rig.commanding = set(NODES), True, True
    rig.position, rig.command = np.array([0.0, 0.0, 0.2]), np.zeros(2)
    rig.actuators = np.zeros(2)
    assert rig.run(0.5).reason == first
    ok, message = rig.supervisor.request_start(rig.now)
    assert not ok
    assert 'reset' in message
    assert rig.supervisor.request_reset(rig.now) == (True, 'ready: call start to move')
    assert rig.supervisor.request_start(rig.now)[0]
    assert rig.run(0.2).motion_allowed


def test_reset_is_refused_while_the_fault_persists():
    rig = Rig().running()
    rig.feedback = False
    rig.run(0.2)
    ok, message = rig.supervisor.request_reset(rig.now)
    assert not ok
    assert 'still faulty: feedback stale' in message


def test_stop_request_stops_motion_without_a_fault():
    rig = Rig().running()
    assert rig.supervisor.request_stop(rig.now)[0]
    status = rig.run(0.1)
    assert (status.state, status.motion_allowed) == (SafetyState.STOPPED, False)
    assert rig.supervisor.request_start(rig.now)[0]


@pytest.mark.parametrize('request_', ['request_stop', 'request_estop', 'request_start'])
def test_untouched_stays_false_after_a_stop_estop_or_start_request(request_):
    rig = Rig()
    rig.alive.discard('plant')
    rig.run(0.1)
    assert not rig.supervisor.request_start(rig.now)[0]  # a refused start does not count
    rig.alive.add('plant')
    rig.run(0.1)
    assert rig.supervisor.untouched
    getattr(rig.supervisor, request_)(rig.now)
    assert not rig.supervisor.untouched
    rig.supervisor.request_stop(rig.now)
    rig.supervisor.request_reset(rig.now)
    rig.alive.discard('plant')
    rig.run(1.2)
    rig.alive.add('plant')
    assert rig.run(0.1).state is SafetyState.READY
    assert not rig.supervisor.untouched


def test_untouched_is_false_in_a_restarted_supervisor_if_a_heartbeat_says_touched():
    rig = Rig()
    rig.supervisor.on_heartbeat('tracker', 0.0, touched=True)
    rig.supervisor.on_heartbeat('tracker', 0.1)  # this node has restarted as well
    assert not rig.supervisor.untouched


def test_on_request_is_true_after_a_stop_or_estop_request_and_false_after_a_fault():
    rig = Rig().running()
    assert not rig.supervisor.status(rig.now).on_request
    rig.supervisor.request_stop(rig.now)
    assert rig.run(0.05).on_request
    rig.supervisor.request_start(rig.now)
    rig.supervisor.request_estop(rig.now)
    status = rig.run(0.05)
    assert (status.state, status.on_request) == (SafetyState.FAULT, True)
    rig.supervisor.request_reset(rig.now)
    rig.supervisor.request_start(rig.now)
    rig.commanding = False
    status = rig.run(0.3)
    assert (status.state, status.on_request) == (SafetyState.FAULT, False)


def test_supervisor_runs_without_poses_if_feedback_is_not_required():
    rig = Rig(feedback_required=False)
    rig.feedback = False
    assert rig.running().run(1.0).motion_allowed


def test_missing_actuator_states_are_reported_as_stale():
    rig = Rig().running()
    rig.actuators = None
    assert 'actuator state stale' in rig.run(0.3).reason


def test_missing_heartbeat_is_reported_as_a_silent_node_not_as_stale_data():
    rig = Rig().running()
    rig.alive.discard('plant')
    assert rig.run(0.9).motion_allowed
    status = rig.run(0.2)
    assert status.state is SafetyState.FAULT
    assert 'node plant silent for' in status.reason
    assert 'stale' not in status.reason


def test_staleness_uses_the_loop_clock_and_heartbeats_use_the_wall_clock():
    rig = Rig().running()
    at = rig.now
    for i in range(500):  # the simulation stands still for five seconds
        for name in NODES:
            rig.supervisor.on_heartbeat(name, at + 0.01 * i)
        assert rig.supervisor.update(at, at + 0.01 * i).motion_allowed
    status = rig.supervisor.update(at + 0.11, at + 5.0)
    assert 'feedback stale: 110 ms old (limit 100 ms)' in status.reason


def test_non_strict_supervisor_holds_on_stale_data_counts_the_hold_and_resumes():
    rig = Rig(strict=False).running()
    rig.commanding = False
    status = rig.run(0.2)
    assert (status.state, status.motion_allowed) == (SafetyState.HELD, False)
    assert 'command stale' in status.reason
    rig.commanding = True
    assert not rig.run(0.1).motion_allowed  # resumes only after a calm period
    status = rig.run(0.2)
    assert status.state is SafetyState.RUNNING
    assert rig.supervisor.details(rig.now)['holds'] == '1'


def test_hold_becomes_a_fault_after_5_s_or_on_invalid_feedback():
    rig = Rig(strict=False).running()
    rig.feedback = False
    assert rig.run(4.9).state is SafetyState.HELD
    status = rig.run(0.3)
    assert status.state is SafetyState.FAULT
    assert 'feedback stale' in status.reason
    assert 'held for 5 s' in status.reason
    rig = Rig(strict=False).running()
    rig.commanding = False
    assert rig.run(0.2).state is SafetyState.HELD
    rig.supervisor.on_feedback(rig.now, [np.nan, 0.0, 0.0])
    assert rig.run(0.01).state is SafetyState.FAULT


def test_stop_request_ends_a_hold():
    rig = Rig(strict=False).running()
    rig.commanding = False
    rig.run(0.2)
    rig.supervisor.request_stop(rig.now)
    rig.commanding = True
    assert rig.run(1.0).state is SafetyState.STOPPED


def test_one_late_supervisor_cycle_is_tolerated_two_in_a_row_are_not():
    rig = Rig().running()
    rig.now += 0.09  # late, but not long enough for drivers to hold the arm
    assert rig.supervisor.update(rig.now).motion_allowed
    assert rig.run(0.05).motion_allowed
    # A second time in a row is not excused.
    rig.now += 0.09
    rig.supervisor.update(rig.now)
    rig.now += 0.09
    assert not rig.supervisor.update(rig.now).motion_allowed


@pytest.mark.parametrize(
    ('strict', 'state'), [(True, SafetyState.FAULT), (False, SafetyState.HELD)]
)
def test_supervisor_late_beyond_its_limit_reports_its_own_lateness(strict, state):
    rig = Rig(strict=strict).running()
    rig.now += 0.3
    status = rig.supervisor.update(rig.now)
    assert status.state is state
    assert status.reason == 'supervisor late by 300 ms (limit 100 ms)'


def test_ready_supervisor_waits_again_for_a_node_that_falls_silent():
    rig = Rig()
    rig.run(0.1)
    rig.alive.discard('plant')
    status = rig.run(1.2)
    assert status.state is SafetyState.WAITING
    assert 'node plant silent' in status.reason
    rig.alive.add('plant')
    assert rig.run(0.1).state is SafetyState.READY


def test_device_not_ready_stops_a_running_arm_at_once():
    rig = Rig().running()
    rig.not_ready['plant'] = 'not homed'
    status = rig.run(0.01)
    assert (status.state, status.reason) == (SafetyState.FAULT, 'plant: not homed')
    assert rig.supervisor.request_reset(rig.now) == (False, 'still faulty: plant: not homed')
    rig.not_ready.clear()
    rig.run(0.02)
    assert rig.supervisor.request_reset(rig.now)[0]
    assert not rig.run(0.02).motion_allowed  # a device that comes back does not move the arm


def test_supervisor_waits_for_a_device_not_ready_while_nothing_moves():
    rig = Rig()
    rig.not_ready['plant'] = 'not homed'
    assert rig.run(0.1).reason == 'waiting: plant: not homed'
    assert rig.supervisor.request_start(rig.now) == (False, 'not ready: plant: not homed')
    rig.not_ready.clear()
    assert rig.run(0.05).state is SafetyState.READY
    rig.not_ready['plant'] = 'homing'
    assert rig.run(0.05).state is SafetyState.WAITING
    rig.not_ready.clear()
    assert rig.run(0.05).state is SafetyState.READY
    rig.not_ready['somebody else'] = 'not homed'
    assert rig.run(0.05).state is SafetyState.READY


def test_start_is_refused_until_commands_reach_the_plant_node():
    rig = Rig()
    rig.unheard['plant'] = 'command stale: 900 ms old (limit 100 ms)'
    status = rig.run(0.5)  # commands arrive at the supervisor
    assert status.state is SafetyState.WAITING
    assert status.reason == 'waiting: plant: command stale: 900 ms old (limit 100 ms)'
    refused = rig.supervisor.request_start(rig.now)
    assert refused == (False, 'not ready: plant: command stale: 900 ms old (limit 100 ms)')
    rig.unheard.clear()
    assert rig.run(0.05).state is SafetyState.READY
    rig.unheard['plant'] = 'supervisor silent for 200 ms (limit 150 ms)'
    rig.run(0.02)
    assert not rig.supervisor.request_start(rig.now)[0]
    rig.unheard.clear()
    rig.running()


def test_reset_is_refused_until_commands_reach_the_plant_node():
    rig = Rig().running()
    rig.alive.discard('tracker')
    rig.commanding = False
    assert rig.run(0.3).state is SafetyState.FAULT
    rig.alive.add('tracker')  # restarted, and heard by the supervisor first
    rig.commanding = True
    rig.unheard['plant'] = 'command stale: 900 ms old (limit 100 ms)'
    rig.run(0.1)
    refused = rig.supervisor.request_reset(rig.now)
    assert refused == (False, 'still faulty: plant: command stale: 900 ms old (limit 100 ms)')
    rig.unheard.clear()
    rig.run(0.02)
    assert rig.supervisor.request_reset(rig.now)[0]


def test_missing_input_reported_for_100_ms_does_not_stop_a_running_arm():
    rig = Rig(strict=False).running()
    # Heartbeats from before the start may still report missing messages.
    rig.unheard['plant'] = 'supervisor silent for 200 ms (limit 150 ms)'
    assert rig.run(0.1).state is SafetyState.RUNNING


@pytest.mark.parametrize(
    ('strict', 'stopped'), [(True, SafetyState.FAULT), (False, SafetyState.HELD)]
)
def test_input_missing_at_a_node_for_250_ms_stops_a_running_arm_not_for_150_ms(strict, stopped):
    rig = Rig(strict=strict).running()
    rig.unheard['tracker'] = 'pose stale: 130 ms old (limit 120 ms)'
    assert rig.run(0.15).state is SafetyState.RUNNING
    rig.unheard.clear()
    rig.run(0.02)
    rig.unheard['tracker'] = 'pose stale: 140 ms old (limit 120 ms)'
    assert rig.run(0.15).state is SafetyState.RUNNING  # counted from the last complete report
    status = rig.run(0.1)
    assert status.state is stopped
    assert status.reason == 'tracker: pose stale: 140 ms old (limit 120 ms)'
    rig.unheard.clear()
    rig.run(0.25)
    if strict:
        assert rig.supervisor.request_reset(rig.now)[0]
        assert rig.supervisor.request_start(rig.now)[0]
    assert rig.run(0.1).state is SafetyState.RUNNING


def test_hold_lasts_until_commands_reach_the_plant_node():
    rig = Rig(strict=False).running()
    rig.commanding = False
    assert rig.run(0.3).state is SafetyState.HELD
    rig.commanding = True
    rig.unheard['plant'] = 'command stale: 400 ms old (limit 100 ms)'
    assert rig.run(0.5).state is SafetyState.HELD
    rig.unheard.clear()
    assert rig.run(0.25).state is SafetyState.RUNNING


@pytest.fixture
def gate():
    return CommandGate(LIMITS, command_timeout_s=0.1, permit_timeout_s=0.15)


def test_gate_reports_missing_permits_and_commands_even_while_motion_is_denied(gate):
    assert gate.unheard(0.0) == 'nothing received from the supervisor yet'
    gate.on_permit(0.0, False)
    assert gate.unheard(0.0) == ''  # a missing first command is reported by `not_ready`
    gate.on_command(0.0, [0.01, 0.02])
    gate.on_permit(0.1, False)
    assert gate.unheard(0.09) == ''
    assert gate.unheard(0.11) == 'command stale: 110 ms old (limit 100 ms)'
    gate.on_command(0.2, [0.01, 0.02])
    assert gate.unheard(0.26) == 'supervisor silent for 160 ms (limit 150 ms)'
    assert gate.unheard(0.26, 0.2) == ''  # off real time, commands age on the loop's clock


def test_gate_needs_a_permit_and_a_fresh_valid_command(gate):
    assert gate.target(0.0) == (None, 'nothing received from the supervisor yet')
    gate.on_permit(0.0, False)
    assert gate.target(0.0)[0] is None
    gate.on_permit(0.0, True)
    assert gate.target(0.0) == (None, 'no command yet')
    assert gate.on_command(0.0, [0.01, 0.02]) is None
    target, reason = gate.target(0.05)
    np.testing.assert_array_equal(target, [0.01, 0.02])
    assert reason == ''


def test_gate_is_not_ready_before_the_first_good_command(gate):
    assert gate.not_ready() == 'no command yet'
    gate.on_command(0.0, [np.nan, 0.0])
    assert 'refused' in gate.not_ready()
    gate.on_command(0.0, [0.01, 0.02])
    assert gate.not_ready() == ''
    gate.on_command(0.1, [np.nan, 0.0])
    assert gate.not_ready() == ''  # the gate holds, and the supervisor sees the command itself


def test_gate_closes_when_commands_or_permits_stop(gate):
    gate.on_permit(0.0, True)
    gate.on_command(0.0, [0.01, 0.02])
    gate.on_permit(0.1, True)
    assert 'command stale: 110 ms old' in gate.target(0.11)[1]
    gate.on_command(0.2, [0.01, 0.02])
    target, reason = gate.target(0.26)
    assert target is None
    assert 'supervisor silent for 160 ms (limit 150 ms)' in reason


@pytest.mark.parametrize(
    ('bad', 'said'),
    [
        ([0.1, 0.0], 'a = 0.1 m outside [-0.01, 0.03] m'),
        ([np.nan, 0.0], 'a = nan: expected a finite number of m'),
        ([0.0], 'command has shape (1,); expected (2,) for a, b'),
        ([0.0, 0.0, 0.0], 'command has shape (3,); expected (2,) for a, b'),
    ],
)
def test_gate_refuses_bad_commands_and_forgets_the_last_good_one(gate, bad, said):
    gate.on_permit(0.0, True)
    gate.on_command(0.0, [0.01, 0.02])
    refusal = gate.on_command(0.01, bad)
    assert refusal == f'command refused: {said}'
    assert gate.target(0.02) == (None, refusal)


def test_limit_error_carries_name_value_range_and_unit():
    with pytest.raises(LimitError) as error:
        LIMITS.check([0.0, -0.03])
    e = error.value
    assert (e.name, e.value, e.low, e.high, e.unit) == ('b', -0.03, -0.02, 0.04, 'm')


def test_rate_bounds_always_leave_room_to_brake():
    """Driving at the upper bound every period never leaves the range, never brakes too hard."""
    period = 0.01
    x, v = np.zeros(2), np.zeros(2)
    for _ in range(2000):
        _, high = LIMITS.rate_bounds(x, v, period)
        assert np.all(np.abs(high) <= LIMITS.max_speed + 1e-12)
        assert np.all(np.abs(high - v) <= LIMITS.max_acceleration * period * 1.01 + 1e-9)
        v = high
        x = x + v * period
        assert np.all(x <= LIMITS.position_max + 1e-9)
    np.testing.assert_allclose(x, LIMITS.position_max, atol=1e-6)


def test_external_problem_stops_the_arm_and_must_be_gone_before_reset():
    rig = Rig().running()
    rig.supervisor.on_problem('feedback watch', 'pose repeats itself (limit 1.0 mm)')
    status = rig.run(0.02)
    assert status.state is SafetyState.FAULT
    assert status.reason == 'pose repeats itself (limit 1.0 mm)'
    refused = rig.supervisor.request_reset(rig.now)
    assert refused == (False, 'still faulty: pose repeats itself (limit 1.0 mm)')
    rig.supervisor.on_problem('feedback watch', None)
    assert rig.run(0.02).state is SafetyState.FAULT  # latched
    assert rig.supervisor.request_reset(rig.now)[0]


@pytest.mark.parametrize('said', ['unplugged', 'plant: unplugged'])
def test_not_ready_reason_names_its_node_only_once(said):
    rig = Rig().running()
    rig.not_ready['plant'] = said
    assert rig.run(0.02).reason == 'plant: unplugged'


def test_feedback_becomes_stale_only_after_the_time_the_estimator_bridges():
    rig = Rig(bridge_s=0.5).running()
    rig.feedback = False
    assert rig.run(0.55).state is SafetyState.RUNNING
    status = rig.run(0.1)
    assert status.state is SafetyState.FAULT
    assert 'limit 600 ms' in status.reason


def test_jump_limit_applies_to_consecutive_poses_but_not_across_a_bridged_gap():
    rig = Rig(bridge_s=0.5).running()
    rig.feedback = False
    rig.run(0.3)
    rig.feedback, rig.position = True, rig.position + 0.04
    assert rig.run(0.05).state is SafetyState.RUNNING
    rig.position = rig.position + 0.04
    assert 'jumped' in rig.run(0.05).reason
