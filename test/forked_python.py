"""
Runs Python processes with modules already imported, by forking one server process.

Importing NumPy, SciPy and Numba takes longer than most commands. Each call still has a process of
its own, with its own streams, folder and exit status; its imports and state do not affect later
calls. POSIX only.
"""

import atexit
import gc
import json
import os
import runpy
import select
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path

# Imports of most `softarm` commands.
COMMANDS = (
    'softarm_ros.cli.main',
    'softarm_ros.cli.check_command',
    'softarm_ros.cli.run_command',
    'softarm_ros.runtime.arm_assembly',
    'softarm_ros.runtime.supervised_run',
    'scipy.optimize',
    'daqp',
    'ruckig',
    'rich.table',
)
# Imports of `softarm run --direct`.
DIRECT = (
    *COMMANDS,
    'softarm_ros.cli.commands.check',
    'softarm_ros.cli.commands.run',
    'softarm_ros.runtime.direct',
)
# Imports of nodes; rclpy can be forked because each node initialises it after the fork.
NODES = ('softarm_ros.nodes.run_nodes', 'softarm_ros.runtime.arm_assembly')


class ForkedPython:
    """
    Runs Python as `subprocess.run([sys.executable, ...])` does, in forks of one process.

    Parameters
    ----------
    imported : sequence of str
        Modules that every process has imported at its start.
    environment : mapping, optional
        Environment of the processes, instead of this one's.
    folder : path, optional
        Working folder of the processes, instead of this one's; each call may name another.
    rig : str, optional
        Rig whose kernels of model and plant every process has loaded at its start: loading them
        takes a second.

    """

    def __init__(self, imported=COMMANDS, environment=None, folder=None, rig=''):
        self._server = subprocess.Popen(
            [sys.executable, __file__, rig, *imported],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            cwd=folder,
            start_new_session=True,
        )

    def __enter__(self):
        return self

    def __exit__(self, *reason):
        self._server.stdin.close()
        self._server.stdout.close()
        self._server.wait()

    def run(self, *arguments, folder=None, timeout=280.0):
        """
        Run `python -m MODULE ...`, `python -c CODE ...` or `python FILE ...`.

        Returns
        -------
        subprocess.CompletedProcess
            With exit status (negative if a signal ended the process), stdout and stderr.

        Raises
        ------
        subprocess.TimeoutExpired
            After `timeout` [s]; the server process is killed too, so no further call works.

        """
        arguments = [str(part) for part in arguments]
        with tempfile.TemporaryDirectory() as place:
            out, err = Path(place, 'out'), Path(place, 'err')
            job = json.dumps([arguments, str(out), str(err), str(folder or '.')]) + '\n'
            self._server.stdin.write(job.encode())
            self._server.stdin.flush()
            if not select.select([self._server.stdout], [], [], timeout)[0]:
                os.killpg(self._server.pid, 9)
                raise subprocess.TimeoutExpired(arguments, timeout)
            ended = self._server.stdout.readline()
            assert ended, f'the process that is forked has ended: {self._server.wait()}'
            return subprocess.CompletedProcess(
                arguments, int(ended), out.read_text(), err.read_text()
            )


def next_job():
    """Fork a process for each job; return the job's arguments in the child only."""
    jobs, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), 'w')
    for line in jobs:
        arguments, out, err, folder = json.loads(line)
        child = os.fork()
        if child == 0:
            for number, path in ((0, os.devnull), (1, out), (2, err)):
                opened = os.open(path, os.O_RDWR | os.O_CREAT)
                os.dup2(opened, number)
                os.close(opened)
            os.chdir(folder)
            jobs.close()
            answers.close()
            return arguments
        answers.write(f'{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n')
        answers.flush()
    raise SystemExit


def serve():
    """Import the modules, then fork and run the jobs."""
    sys.path[0] = ''  # as with -m and -c, instead of the folder of this file
    rig, *imported = sys.argv[1:]
    for module in imported:
        import_module(module)
    if rig:
        loaded = import_module('softarm_ros.rigs.loader').load_rig(rig)
        warm_up = import_module('softarm_ros.runtime.warm_up').warm_up
        warm_up(loaded, models=[loaded.model_name(None)])
    gc.freeze()  # forks need not scan existing objects for garbage
    atexit.register(gc.unfreeze)  # otherwise compiled modules report frozen objects as leaks
    first, *rest = next_job()
    if first == '-m':
        sys.argv[1:] = rest[1:]
        runpy.run_module(rest[0], run_name='__main__', alter_sys=True)
    elif first == '-c':
        sys.argv = [first, *rest[1:]]
        exec(compile(rest[0], '<string>', 'exec'), {'__name__': '__main__'})
    else:
        sys.argv = [first, *rest]
        sys.path[0] = str(Path(first).resolve().parent)
        runpy.run_path(first, run_name='__main__')


if __name__ == '__main__':
    serve()
