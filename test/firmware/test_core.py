"""The firmware's core on the host, with sanitizers: its tests, bad frames, a fuzzer."""

import json
import re
import subprocess

import pytest
from firmware_made import FIRMWARE, build, need


def run(*command: object) -> str:
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False, timeout=100
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope='module')
def passed() -> list[str]:
    return re.findall(r'^ok (\w+)$', run(build('core_tests')), re.MULTILINE)


def test_every_c_test_of_the_core_ran_and_passed(passed):
    written = [
        name
        for source in sorted((FIRMWARE / 'tests').glob('test_*.c'))
        for name in re.findall(r'RUN\((\w+)\)', source.read_text())
    ]
    assert len(written) > 40
    assert sorted(passed) == sorted(written)


@pytest.mark.slow
def test_bad_frames_are_refused_and_move_nothing():
    """Sends 200 000 frames to each board; `make -C firmware core-tests` sends a million."""
    said = run(build('flood'), 200_000)
    assert re.search(r'steppers: 200000 frames .* 0 accepted, 0 coils written', said)
    assert re.search(r'valves: 200000 frames .* 0 accepted, 0 valves written', said)


@pytest.mark.slow
def test_coverage_guided_fuzzer_finds_no_error(tmp_path):
    need('clang')
    linked = subprocess.run(
        ['clang', '-fsanitize=fuzzer,address', '-x', 'c', '-', '-o', str(tmp_path / 'linked')],
        input='#include <stddef.h>\nint LLVMFuzzerTestOneInput(char *d, size_t n) { return 0; }',
        capture_output=True,
        text=True,
        check=False,
    )
    if linked.returncode != 0:
        pytest.skip('clang has no libFuzzer here (libclang-rt-dev)')
    corpus = tmp_path / 'corpus'
    corpus.mkdir()
    vectors = json.loads((FIRMWARE / 'protocol' / 'golden_vectors.json').read_text('utf-8'))
    for number, vector in enumerate(vectors['frames']):
        for mode in (0, 1):
            seed = bytes([mode]) + bytes.fromhex(vector['encoded'])
            (corpus / f'{number}_{mode}').write_bytes(seed)
            frame = bytes([vector['type'], len(vector['payload']) // 2, 20])
            frame += bytes.fromhex(vector['payload'])
            (corpus / f'{number}_{mode + 2}').write_bytes(bytes([mode + 2]) + frame)
    said = run(build('fuzz'), '-runs=3000', '-seed=1', '-max_len=512', corpus)
    runs = re.search(r'Done (\d+) runs', said)
    assert runs is not None, said
    assert int(runs.group(1)) >= 3000


def test_core_includes_only_stdbool_stdint_and_its_own_headers():
    for source in (FIRMWARE / 'core').iterdir():
        included = re.findall(r'#include [<"]([\w/.]+)[>"]', source.read_text())
        assert set(included) <= {
            'stdbool.h',
            'stdint.h',
            *(header.name for header in (FIRMWARE / 'core').glob('*.h')),
        }
