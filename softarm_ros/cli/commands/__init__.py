"""
The commands of `softarm`, one module each: signature and help, in a one-command Typer `app`.

Their implementations are elsewhere and are imported when a command runs. Names and summaries are
listed here too, so that `softarm --help` imports no command.
"""

SUMMARIES = {
    'rigs': 'List the rigs that come with the package.',
    'check': 'Check rig files: everything that is wrong, with field and line, or a summary.',
    'parts': 'List the parts that arms are composed of, and the fields of one.',
    'model': 'Compute shape from actuation (forward) or actuation from a tip position (inverse).',
    'urdf': 'Print the URDF of a rig, generated from its file.',
    'rviz': 'Print the rviz configuration of a rig: its topics and frames, a view of all of it.',
    'compare': 'Run arms simulated and with emulated devices, in real time, and show both errors.',
    'faults': 'Break simulated arms in mid-run: who notices, when, and how far the tip has gone.',
    'workspace': 'Show where the tip of an arm can be within its limits.',
    'picture': 'Draw a simulated arm at a few moments, as PNG.',
    'render': 'Draw an arm in motion, simulated or from a bag: a picture, a GIF or a video.',
    'view': 'Look at an arm in a browser: one that runs, or a recorded run.',
    'machines': (
        'Show what is drawn for machines of a rig, or drive them: true and measured errors.'
    ),
    'run': 'Run a trajectory or a task and show the tracking error; Ctrl-C stops the arm.',
    'goto': 'Send the tip of an arm that runs with --goals to a position; Ctrl-C cancels.',
    'teleop': 'Lead the tip of an arm that runs with --goals by keys or a gamepad; q ends it.',
    'record': 'Record all topics of a running arm into a rosbag2 bag, or repair one.',
    'replay': 'Play a recorded run over topics, with /clock; or run its tracker again.',
    'score': 'Feed recorded commands to models: predicted against measured, and baselines.',
    'soak': 'Run rigs over topics many times: completion, holds, missed cycles, latency, error.',
    'ports': 'List what is plugged in and test it without motion; opening its port resets a Mega.',
    'jog': 'Move one actuator from where it is, slowly and within its limits; Ctrl-C stops it.',
    'excite': 'Move an arm so that it can be identified, and record it as CSV.',
    'identify': 'Identify an arm of any kind from its recordings; intervals, and what the data '
    'cannot tell.',
    'calibrate': "Calibrate cameras with a board, find the arm's base and the window of a tank.",
    'demo': 'Drive a circle over topics, watched in a browser, then three ways beside the paper.',
}
