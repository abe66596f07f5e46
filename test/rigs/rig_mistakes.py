"""Rig files with one mistake each, and the expected messages."""

from pathlib import Path

import pytest

from softarm_ros.rigs.loader import RigError, load_rig

TEXT = (Path(__file__).parent / 'two_sections.yaml').read_text(encoding='utf-8')


def problems_of(text, tmp_path):
    """Return (line, rest) of each problem of a rig file with this text."""
    path = tmp_path / 'rig.yaml'
    path.write_text(text, encoding='utf-8')
    with pytest.raises(RigError) as error:
        load_rig(path)
    lines = str(error.value).splitlines()
    assert len(lines) == len(error.value.problems)
    found = []
    for line in lines:
        assert line.startswith(f'{path}:'), line
        number, _, rest = line[len(str(path)) + 1 :].partition(': ')
        found.append((int(number), rest) if number.isdigit() else (None, f'{number}: {rest}'))
    return found


def line_of(text, part):
    """Return the 1-based line of the first occurrence of `part`."""
    return text[: text.index(part)].count('\n') + 1


def edited(old, new):
    assert old in TEXT, old
    return TEXT.replace(old, new, 1)


CAMERA_RATE = '    rate_hz: 100.0                      # [A] the cameras do'
NATNET = """    rate_hz: 100.0
  natnet:
    server: 192.168.1.10
    rate_hz: 100.0
    bodies:
      - {name: base, section: base}
"""

# (mistake, text to replace, replacement, text in the reported line, message)
SINGLE = [
    (
        'two sensors',
        CAMERA_RATE,
        NATNET
        + """      - {name: tip, section: distal}
  qtm:
    host: 192.168.1.11
    rate_hz: 100.0
    bodies:
      - {name: stand, section: base}
      - {name: tip, section: distal}
    #""",
        'qtm:',
        'sensors.qtm: expected one sensor: natnet publishes tip/pose already',
    ),
    (
        'a sensor that does not see the tip',
        CAMERA_RATE,
        NATNET
        + """      - {name: tip, section: proximal}
    #""",
        'natnet:',
        'sensors.natnet: nothing that it sees is the tip: expected a body with section: distal '
        'and fraction: 1, or such a point without an offset',
    ),
    (
        'a port behind the name of a server',
        CAMERA_RATE,
        NATNET.replace('168.1.10', '168.1.10:1510')
        + """      - {name: tip, section: distal}
    #""",
        'server: 192',
        "sensors.natnet.server = '192.168.1.10:1510': expected a computer's name or address "
        'alone, as 192.168.1.10 or motive.lab: its port has a field of its own',
    ),
    (
        'body on a section that the arm has not',
        CAMERA_RATE,
        NATNET
        + """      - {name: tip, section: distall}
    #""",
        'section: distall',
        "sensors.natnet.bodies[1].section = 'distall': no such section (did you mean 'distal'?); "
        "known: 'base', 'proximal', 'distal'",
    ),
    (
        'misspelt field',
        'length_m: 0.093 ',
        'lenght_m: 0.093 ',
        'lenght_m',
        "arm.sections[0].lenght_m = 0.093: unknown field 'lenght_m' (did you mean 'length_m'?)",
    ),
    (
        'negative length',
        'length_m: 0.093 ',
        'length_m: -0.093 ',
        'length_m: -0.093',
        'arm.sections[0].length_m = -0.093: expected a number > 0 and <= 5',
    ),
    (
        'NaN',
        'cable_radius_m: 0.0125',
        'cable_radius_m: .nan',
        'cable_radius_m: .nan',
        'arm.sections[0].cable_radius_m = nan: expected a number > 0 and <= 1',
    ),
    (
        'infinity',
        'position_max_m: 0.055',
        'position_max_m: .inf',
        'position_max_m: .inf',
        'arm.actuators[0].position_max_m = inf: expected a number',
    ),
    (
        'text for a number',
        'damping_time_s: 0.03 ',
        'damping_time_s: "0.03" ',
        'damping_time_s: "0.03"',
        "plant.sections[0].damping_time_s = '0.03': expected a number > 0",
    ),
    (
        'decimal comma',
        'settle_timeout_s: 3.0',
        'settle_timeout_s: 3,5',
        'settle_timeout_s: 3,5',
        "controller.settle_timeout_s = '3,5': expected a number >= 0 and <= 600",
    ),
    (
        'number for text',
        'name: cable_arm',
        'name: 7',
        'name: 7',
        'name = 7: expected a name: lowercase letters, digits and _, starting with a letter',
    ),
    (
        'name that ROS refuses',
        'name: proximal_2',
        'name: Proximal-2',
        'name: Proximal-2',
        "arm.actuators[1].name = 'Proximal-2': expected a name: lowercase letters, digits and _, "
        'starting with a letter',
    ),
    (
        'truth value for a number',
        'hold_timeout_s: 5.0',
        'hold_timeout_s: true',
        'hold_timeout_s: true',
        'supervisor.hold_timeout_s = true: expected a number > 0 and <= 60',
    ),
    (
        'time-out in milliseconds',
        'command_timeout_s: 0.1',
        'command_timeout_s: 100',
        'command_timeout_s: 100',
        'supervisor.command_timeout_s = 100: expected a number > 0 and <= 60',
    ),
    (
        'fraction for a whole number',
        'segments_per_section: 10',
        'segments_per_section: 10.5',
        'segments_per_section: 10.5',
        'plant.segments_per_section = 10.5: expected a whole number >= 2 and <= 64',
    ),
    (
        'direction of a cable beyond two revolutions',
        'angle_deg: 0.0',
        'angle_deg: 1e9',
        'angle_deg: 1e9',
        'arm.actuators[0].angle_deg = 1000000000.0: expected a number >= -720 and <= 720',
    ),
    (
        'tilt of the base beyond two revolutions',
        'base_tilt_deg: [0.0, 0.0]',
        'base_tilt_deg: [0.0, 1800.0]',
        'base_tilt_deg: ',
        'plant.base_tilt_deg[1] = 1800.0: expected a number >= -720 and <= 720',
    ),
    (
        'watched distance in millimetres',
        'max_pose_jump_m: 0.05',
        'max_pose_jump_m: 50',
        'max_pose_jump_m: 50',
        'supervisor.max_pose_jump_m = 50: expected a number > 0 and <= 10',
    ),
    (
        'damping that lets nothing move',
        'damping: 1.0e-4',
        'damping: 1.0e+9',
        'damping: 1.0e+9',
        'controller.damping = 1000000000.0: expected a number > 0 and <= 1',
    ),
    (
        'nothing after the colon',
        'damping: 1.0e-4',
        'damping:',
        'damping:  ',
        'controller.damping = null: expected a number > 0 and <= 1',
    ),
    (
        'vector too short',
        '[0.0, 0.0, 9.81]',
        '[0.0, 9.81]',
        'gravity_m_s2',
        'gravity_m_s2 = [0.0, 9.81]: expected a list of 3: each a number',
    ),
    (
        'vector too long',
        '[0.0, 0.0, 9.81]',
        '[0.0, 0.0, 9.81, 0.0]',
        'gravity_m_s2',
        'gravity_m_s2 = [0.0, 0.0, 9.81, 0.0]: expected a list of 3: each a number',
    ),
    (
        'gravity in g',
        '[0.0, 0.0, 9.81]',
        '[0.0, 0.0, 981]',
        'gravity_m_s2',
        'gravity_m_s2 = [0, 0, 981]: magnitude 981 m/s^2; expected 0, or 0.1 to 30 '
        '(9.81 on Earth)',
    ),
    (
        'unknown model',
        'model: cable_statics',
        'model: cable_static',
        'model:',
        "model.kind = 'cable_static': expected one of 'cable_statics', 'constant_curvature', "
        "'cosserat', 'heavy_cable_statics' (did you mean 'cable_statics'?)",
    ),
    (
        'wrong unit',
        'unit: m ',
        'unit: mm ',
        'unit: mm',
        "arm.actuators[0].unit = 'mm': expected 'm'",
    ),
    (
        'missing field',
        'rate_hz: 100.0                      # [A]',
        'delay_s: 0.01 # ',
        'pose_topic:',
        'sensors.pose_topic.rate_hz: missing; expected a number >= 0.1 and <= 10000 '
        '(how often poses arrive)',
    ),
    (
        'actuator of no section',
        'name: distal_1, section: distal}',
        'name: distal_1, section: distall}',
        'distal_1',
        "arm.actuators[3].section = 'distall': no such section (did you mean 'distal'?); "
        "known: 'proximal', 'distal'",
    ),
    (
        'two actuators of one name',
        'name: proximal_3',
        'name: proximal_2',
        'angle_deg: 240.0}',
        "arm.actuators[2].name = 'proximal_2': same name as arm.actuators[1]; expected unique "
        'names',
    ),
    (
        'range without zero, below',
        'position_min_m: -0.045',
        'position_min_m: 0.001',
        'position_min_m: 0.001',
        'arm.actuators[0].position_min_m = 0.001: expected a number < 0: the cable must pay out '
        'when '
        'the arm bends away from it',
    ),
    (
        'range in millimetres',
        'position_max_m: 0.055',
        'position_max_m: 55.0',
        'position_max_m: 55.0',
        'arm.actuators[0].position_max_m = 55: expected at most the length of the arm, 0.246 m, '
        'to either side (was it given in millimetres?)',
    ),
    (
        'range without zero, above',
        'position_max_m: 0.055',
        'position_max_m: -0.001',
        'position_max_m: -0.001',
        'arm.actuators[0].position_max_m = -0.001: expected a number > 0: the cable must pull in '
        'to '
        'bend the arm',
    ),
    (
        'two cables in the same place',
        'name: proximal_2, angle_deg: 120.0',
        'name: proximal_2, angle_deg: 360.0',
        'name: proximal_2',
        'arm.actuators[1].angle_deg = 360: expected at least 1 deg between cables of a section; '
        "'proximal_1' is 0 deg away",
    ),
    (
        'length in millimetres',
        'endcap_length_m: 0.015 ',
        'endcap_length_m: 15 ',
        'endcap_length_m: 15',
        'arm.sections[0].endcap_length_m = 15: expected a number >= 0 and <= 1',
    ),
    (
        'plant with another number of sections',
        '    - *body\n',
        '',
        'sections:\n    - &body',
        'plant.sections = 1 section: expected as many as sections of the arm: 2',
    ),
    (
        'plant of another size',
        'length_m: 0.0935',
        'length_m: 0.935',
        'length_m: 0.935',
        "plant.sections[0].length_m = 0.935: expected within a factor 2 of the controller's 0.093 "
        '(the plant is the same arm, with stated errors)',
    ),
    (
        'body thinner than the cables are apart',
        'outer_radius_m: 0.016',
        'outer_radius_m: 0.012',
        'cable_radius_m: 0.0123',
        'plant.sections[0].cable_radius_m = 0.0123: expected less than outer_radius_m = 0.012 '
        '(cables run inside the body)',
    ),
    (
        'feedback much slower than control',
        'rate_hz: 100.0                      # [A]',
        'rate_hz: 19 # ',
        'rate_hz: 19',
        'sensors.pose_topic.rate_hz = 19: expected 20 to 1000: a fifth of, up to ten times '
        'controller.rate_hz = 100',
    ),
    (
        'feedback time-out below the feedback period',
        'feedback_timeout_s: 0.12',
        'feedback_timeout_s: 0.008',
        'feedback_timeout_s: 0.008',
        'supervisor.feedback_timeout_s = 0.008: expected more than 0.02: two periods of '
        'sensors.pose_topic.rate_hz = 100, else one lost pose stops the arm',
    ),
    (
        'feedback time-out below the period of the sensor that its driver reads',
        CAMERA_RATE,
        NATNET.replace('rate_hz: 100.0\n    bodies', 'rate_hz: 10.0\n    bodies')
        + '      - {name: tip, section: distal} #',
        'feedback_timeout_s: 0.12',
        'supervisor.feedback_timeout_s = 0.12: expected more than 0.2: two periods of '
        'sensors.natnet.rate_hz = 10, else one lost pose stops the arm',
    ),
    (
        'feedback time-out below simulated delay',
        'delay_s: 0.01 ',
        'delay_s: 0.2 ',
        'feedback_timeout_s',
        'supervisor.feedback_timeout_s = 0.12: expected more than 0.22: '
        'plant.pose_sensor.delay_s and '
        'two periods of plant.pose_sensor.rate_hz',
    ),
    (
        'drop-outs longer than the time-out',
        'dropout_duration_s: 0.015',
        'dropout_duration_s: 0.1',
        'feedback_timeout_s',
        'supervisor.feedback_timeout_s = 0.12: expected more than 0.5: five times '
        'plant.pose_sensor.dropout_duration_s, else ordinary drop-outs stop the arm',
    ),
    (
        'oldest pose younger than the delay',
        'max_pose_jump_m: 0.05',
        'max_pose_jump_m: 0.05\n  feedback_watch:\n    max_age_s: 0.025',
        'max_age_s',
        'supervisor.feedback_watch.max_age_s = 0.025: expected more than 0.03: '
        'sensors.pose_topic.delay_s = 0.01 and two periods of sensors.pose_topic.rate_hz = 100',
    ),
    (
        'repetition within the noise',
        'max_pose_jump_m: 0.05',
        'max_pose_jump_m: 0.05\n  feedback_watch:\n    frozen_resolution_m: 2.0e-4',
        'frozen_resolution_m',
        'supervisor.feedback_watch.frozen_resolution_m = 0.0002: expected less than 2e-05: a '
        'tenth of sensors.pose_topic.position_noise_m, else a sound sensor seems frozen',
    ),
    (
        'command time-out below the control period',
        'command_timeout_s: 0.1',
        'command_timeout_s: 0.01',
        'command_timeout_s: 0.01',
        'supervisor.command_timeout_s = 0.01: expected more than 0.02: two periods of '
        'controller.rate_hz = 100, else one late cycle stops the arm',
    ),
    (
        'heartbeat time-out below the heartbeat',
        'heartbeat_timeout_s: 1.0',
        'heartbeat_timeout_s: 0.1',
        'heartbeat_timeout_s: 0.1',
        'supervisor.heartbeat_timeout_s = 0.1: expected more than 0.2: two heartbeats, which '
        'nodes send at 10 Hz',
    ),
    (
        'pose jump within the noise',
        'max_pose_jump_m: 0.05',
        'max_pose_jump_m: 0.0015',
        'max_pose_jump_m: 0.0015',
        'supervisor.max_pose_jump_m = 0.0015: expected more than 0.002: ten times '
        'sensors.pose_topic.position_noise_m = 0.0002, else noise stops the arm',
    ),
    (
        'feedback gain that cannot be stable',
        'feedback_gain_1_s: 3.0',
        'feedback_gain_1_s: 80',
        'feedback_gain_1_s: 80',
        'controller.feedback_gain_1_s = 80: expected less than 52.4: with 30 ms from pose to '
        'command '
        '(both periods and sensors.pose_topic.delay_s) the loop oscillates',
    ),
    (
        'feedback gain too large for the swing',
        'feedback_gain_1_s: 3.0',
        'feedback_gain_1_s: 3.0\n  swing: {frequency_hz: 1.0, damping: 0.1}',
        'feedback_gain_1_s: 3.0',
        'controller.feedback_gain_1_s = 3: expected less than 1.88: an arm whose swing differs '
        'from controller.swing by 20 % in frequency or twice in damping, seen 30 ms late, '
        'oscillates',
    ),
    (
        'swing that is damped too much to swing',
        'feedback_gain_1_s: 3.0',
        'feedback_gain_1_s: 3.0\n  swing: {frequency_hz: 1.0, damping: 0.8}',
        'swing: {',
        'controller.swing.damping = 0.8: expected a number > 0 and < 0.7',
    ),
    (
        'unknown default trajectory',
        'default_trajectory: circle',
        'default_trajectory: circel',
        'default_trajectory',
        "default_trajectory = 'circel': no such trajectory (did you mean 'circle'?); "
        "known: 'circle', 'circle_small', 'line'",
    ),
    (
        'unknown kind of trajectory',
        'type: line',
        'type: lines',
        'type: lines',
        "trajectories.line.type = 'lines': expected one of 'cardioid', 'circle', 'line', "
        "'square', 'waypoints' (did you mean 'line'?)",
    ),
    (
        'trajectory without a kind',
        '    type: line\n',
        '',
        '  line:',
        "trajectories.line.type: missing; expected one of 'cardioid', 'circle', 'line', "
        "'square', 'waypoints'",
    ),
    (
        'NaN in a trajectory',
        'end: [0.11, 0.08, 0.18]',
        'end: [0.11, .nan, 0.18]',
        'end: [0.11',
        'trajectories.line.end[1] = nan: expected a number >= -100 and <= 100',
    ),
    (
        'line of no length',
        'end: [0.11, 0.08, 0.18]',
        'end: [0.11, -0.08, 0.18]',
        '  line:',
        'trajectories.line: start and end are the same point [0.11, -0.08, 0.18]',
    ),
    (
        'trajectory faster than the jump limit',
        'radius: 0.1363\n    speed: 0.03',
        'radius: 0.1363\n    speed: 6',
        'speed: 6',
        'trajectories.circle.speed = 6: expected less than 5: supervisor.max_pose_jump_m times '
        'sensors.pose_topic.rate_hz, else the motion itself is taken for a jump',
    ),
    (
        'pressures of an arm that has none',
        'supervisor:\n',
        'supervisor:\n  pressure_watch: {response_s: 0.1, max_error_Pa: 5000}\n',
        'pressure_watch',
        'supervisor.pressure_watch: belongs to arms whose actuators are set by pressure',
    ),
    (
        'name of a trajectory that is not one',
        '  line:',
        '  a/b:',
        '  a/b:',
        "trajectories.a/b: name 'a/b': expected text of lowercase letters, digits and _, "
        'starting with a letter',
    ),
    (
        'duplicate key',
        'model: cable_statics',
        'model: cable_statics\nmodel: constant_curvature',
        'model: constant_curvature',
        "model: duplicate key 'model'; first on line 43",
    ),
    (
        'field that does not exist at all',
        'model: cable_statics',
        'model: cable_statics\nxyzzy: 1',
        'xyzzy',
        "xyzzy = 1: unknown field 'xyzzy'; known: 'name', 'description', 'gravity_m_s2', "
        "'medium', 'tip_load_kg', 'arm', 'model', 'residual', 'hysteresis', 'gripper', 'drives', "
        "'sensors', 'estimator', 'controller', 'supervisor', 'trajectories', "
        "'default_trajectory', 'obstacles', 'recording', 'plant'",
    ),
    (
        'two obstacles of one name',
        'model: cable_statics',
        'model: cable_statics\nobstacles:\n'
        '  - &wall {name: wall, centre_m: [0.0, 0.0, 0.5], size_m: [1.0, 1.0, 0.1]}\n'
        '  - {<<: *wall, name: wall}',
        'name: wall}',
        "obstacles[1].name = 'wall': same name as obstacles[0]; expected unique names",
    ),
]
