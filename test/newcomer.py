"""
Times a newcomer's first steps, in a fresh clone and environment: `make newcomer`.

Prints the times from `make demo` to the first moving picture, to the table, to its end, and to the
end of the first run of an own rig file. pip may install packages from its cache.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Patterns of the demo's output lines, by milestone.
MARKS = {
    'viewer': re.compile(r'cable_arm: http://127'),
    'motion': re.compile(r': (?:approach|track) lap '),
    'table': re.compile(r'closed loop, over topics|cable statics, closed loop'),
}


def main() -> int:
    """Do all steps; return 0 if all of them work."""
    with tempfile.TemporaryDirectory(prefix='softarm-newcomer-') as folder:
        clone = Path(folder) / 'softarm_ros'
        subprocess.run(['git', 'clone', '--quiet', str(ROOT), str(clone)], check=True)
        began = time.monotonic()
        seen: dict[str, float] = {}
        with subprocess.Popen(
            ['make', 'demo'],
            cwd=clone,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, 'PYTHONUNBUFFERED': '1'},
        ) as demo:
            assert demo.stdout is not None
            for line in demo.stdout:
                sys.stdout.write(line)
                sys.stdout.flush()
                for name, pattern in MARKS.items():
                    if pattern.search(line):
                        seen.setdefault(name, time.monotonic() - began)
        seen['end of make demo'] = time.monotonic() - began
        if demo.returncode != 0 or not MARKS.keys() <= seen.keys():
            print(
                f'make demo: exit status {demo.returncode}, seen: {", ".join(seen) or "nothing"}'
            )
            return 1
        own = clone / 'my_arm.yaml'
        text = (clone / 'config' / 'rigs' / 'cable_arm.yaml').read_text(encoding='utf-8')
        own.write_text(re.sub(r'^name: cable_arm$', 'name: my_arm', text, flags=re.MULTILINE))
        softarm = str(clone / '.venv' / 'bin' / 'softarm')
        for words in (['check', own.name], ['run', own.name, '--direct']):
            done = subprocess.run([softarm, *words], cwd=clone, check=False)
            if done.returncode != 0:
                return 1
        ran = time.monotonic() - began
    print()
    print(f'first moving picture   {max(seen["viewer"], seen["motion"]):6.0f} s after make demo')
    print(f'table                  {seen["table"]:6.0f} s')
    print(f'end of make demo       {seen["end of make demo"]:6.0f} s')
    print(f'first run of own YAML  {ran:6.0f} s')
    return 0


if __name__ == '__main__':
    sys.exit(main())
