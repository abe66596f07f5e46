"""
The commands of `softarm`, one module each: signature and help, in a one-command Typer `app`.

Their implementations are elsewhere and are imported when a command runs. Names and summaries are
listed here too, so that `softarm --help` imports no command.
"""

SUMMARIES = {
    'rigs': 'List the rigs that come with the package.',
    'check': 'Check rig files: report every mistake with field and line, or print a summary.',
    'parts': 'List the parts that arms are composed of, or the fields of one part.',
    'model': 'Compute shape from actuation (forward) or actuation from a tip position (inverse).',
    'urdf': 'Print the URDF of a rig, generated from its file.',
    'rviz': 'Print an rviz configuration for a rig: its topics, its frames, a view of the arm.',
    'compare': 'Run arms simulated and with emulated devices in real time; compare the errors.',
    'faults': 'Inject faults into simulated runs: who notices, when, and how far the tip goes.',
    'workspace': 'Show the workspace of an arm: tip positions within its limits.',
    'picture': 'Draw a simulated arm at a few moments, as PNG.',
    'render': 'Draw an arm in motion, simulated or from a bag: a picture, a GIF or a video.',
    'view': 'Show a running arm or a recorded run in a browser.',
    'machines': (
        'Show the drawn parameters of simulated machines, or run them: true and measured errors.'
    ),
    'run': 'Run a trajectory or a task and show the tracking error; Ctrl-C stops the arm.',
    'goto': 'Send the tip of an arm that runs with --goals to a position; Ctrl-C cancels.',
    'teleop': 'Move the tip of an arm that runs with --goals by keys or a gamepad; q quits.',
    'record': 'Record all topics of a running arm into a rosbag2 bag, or repair one.',
    'replay': 'Play a recorded run over topics, with /clock, or repeat the cycles of its tracker.',
    'score': 'Compare model predictions for recorded commands with measurements and baselines.',
    'soak': 'Run rigs over topics many times: completion, holds, missed cycles, latency, error.',
    'ports': 'List connected devices; test them without motion. Opening its port resets a Mega.',
    'jog': 'Move one actuator by an amount, slowly and within its limits; Ctrl-C stops it.',
    'excite': 'Move an arm for identification, and record commands and poses as CSV.',
    'identify': 'Identify the parameters of an arm from recordings, with intervals and warnings.',
    'calibrate': "Calibrate cameras with a board, find the arm's base and the window of a tank.",
    'demo': 'Run a circle over topics, shown in a browser; then compare models with the paper.',
}
