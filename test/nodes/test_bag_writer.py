import os
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from softarm_ros.nodes.bag_writer import BagError, BagWriter, check_bag_folder

ZSTD = b'\x28\xb5\x2f\xfd'  # magic number of its frames


def test_folder_check_accepts_a_new_or_empty_folder_and_creates_nothing(tmp_path):
    check_bag_folder(tmp_path / 'new' / 'deep')
    assert list(tmp_path.iterdir()) == []
    (tmp_path / 'empty').mkdir()
    check_bag_folder(tmp_path / 'empty')
    assert list((tmp_path / 'empty').iterdir()) == []


def test_folder_check_refuses_a_folder_that_is_not_empty(tmp_path):
    (tmp_path / 'old.mcap').write_text('x')
    with pytest.raises(BagError, match=r'is not empty; expected a new or empty folder'):
        check_bag_folder(tmp_path)


def test_folder_check_refuses_a_file_and_a_path_below_a_file(tmp_path):
    path = tmp_path / 'file'
    path.write_text('x')
    with pytest.raises(BagError, match='is a file'):
        check_bag_folder(path)
    with pytest.raises(BagError, match=r'cannot be written: Not a directory'):
        check_bag_folder(path / 'bag')
    assert path.read_text() == 'x'


def test_written_messages_are_read_back(tmp_path):
    pytest.importorskip('rosbags', reason='needs rosbags')
    from rosbags.highlevel import AnyReader
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.LATEST)
    kind = store.types['std_msgs/msg/String']
    bag = BagWriter(tmp_path / 'bag')
    assert bag.add_topic('/said', 'std_msgs/msg/String')
    assert not bag.add_topic('/odd', 'my_msgs/msg/Unknown')
    for i in range(3):
        data = store.serialize_cdr(kind(data=f'word {i}'), 'std_msgs/msg/String')
        bag.write('/said', 1000 + i, bytes(data))
    bag.close()
    bag.close()
    bag.write('/said', 2000, b'')  # after the end: ignored
    assert bag.messages == 3
    with AnyReader([tmp_path / 'bag']) as reader:
        said = [
            (time, reader.deserialize(raw, connection.msgtype).data)
            for connection, time, raw in reader.messages()
        ]
    assert said == [(1000, 'word 0'), (1001, 'word 1'), (1002, 'word 2')]


def test_mcap_library_decodes_the_bag_and_metadata_contain_the_description(tmp_path):
    pytest.importorskip('rosbags', reason='needs rosbags')
    decoder = pytest.importorskip('mcap_ros2.decoder', reason='needs mcap-ros2-support')
    from mcap.reader import make_reader
    from ruamel.yaml import YAML

    from softarm_ros.nodes.bag_repair import about_of

    written(tmp_path / 'bag', 5)
    with (tmp_path / 'bag' / 'bag.mcap').open('rb') as file:
        reader = make_reader(file, decoder_factories=[decoder.DecoderFactory()])
        said = [message.data for _, _, _, message in reader.iter_decoded_messages()]
    assert said == [f'word {i}' for i in range(5)]
    stated = YAML(typ='safe').load(tmp_path / 'bag' / 'metadata.yaml')
    assert stated['rosbag2_bagfile_information']['custom_data'] == ABOUT
    assert about_of(tmp_path / 'bag') == ABOUT


def test_repair_recovers_all_flushed_messages_of_a_killed_writer(tmp_path):
    pytest.importorskip('rosbags', reason='needs rosbags')
    pytest.importorskip('mcap', reason='needs mcap')
    from softarm_ros.nodes.bag_repair import about_of, repair

    process = subprocess.Popen(
        [sys.executable, '-c', KILLED, str(tmp_path / 'bag')], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == 'flushed\n'
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    with pytest.raises(Exception, match='metadata'):
        words(tmp_path / 'bag')
    assert about_of(tmp_path / 'bag') == ABOUT
    saved = repair(tmp_path / 'bag', tmp_path / 'again')
    assert (saved.messages, saved.left_out) == (1000, ())
    assert words(tmp_path / 'again') == [(1000 + i, f'word {i}') for i in range(1000)]
    assert about_of(tmp_path / 'again') == ABOUT


@pytest.mark.parametrize('share', [0.2, 0.5, 0.8, 0.999])
def test_repair_of_a_truncated_file_recovers_its_complete_chunks(tmp_path, share):
    pytest.importorskip('rosbags', reason='needs rosbags')
    pytest.importorskip('mcap', reason='needs mcap')
    from softarm_ros.nodes.bag_repair import repair

    written(tmp_path / 'bag', 1000, flush_every=100)
    path = tmp_path / 'bag' / 'bag.mcap'
    os.truncate(path, int(share * path.stat().st_size))
    saved = repair(path, tmp_path / 'again')
    assert saved.messages % 100 == 0
    assert 100 <= saved.messages <= 1000
    found = words(tmp_path / 'again')
    assert found == [(1000 + i, f'word {i}') for i in range(saved.messages)]


@pytest.mark.parametrize('given', ['.', 'bag.mcap'])
def test_repair_works_from_inside_the_bag_folder(given, tmp_path, monkeypatch):
    pytest.importorskip('rosbags', reason='needs rosbags')
    pytest.importorskip('mcap', reason='needs mcap')
    from softarm_ros.cli.record_command import repair

    written(tmp_path / 'bag', 10, flush_every=5)
    monkeypatch.chdir(tmp_path / 'bag')
    assert list(repair(Path(given), None)) == [f'10 messages: {tmp_path / "bag_repaired"}']


def test_repair_refuses_a_bag_without_a_whole_message_and_writes_nothing(tmp_path):
    pytest.importorskip('rosbags', reason='needs rosbags')
    pytest.importorskip('mcap', reason='needs mcap')
    from softarm_ros.cli.record_command import repair

    written(tmp_path / 'bag', 10)
    (path,) = (tmp_path / 'bag').glob('*.mcap')
    data = path.read_bytes()
    path.write_bytes(data[: data.index(b'\x28\xb5\x2f\xfd')])
    with pytest.raises(BagError, match='no whole message is left in it'):
        list(repair(tmp_path / 'bag', None))
    assert not (tmp_path / 'bag_repaired').exists()


@pytest.mark.parametrize(('damaged', 'index'), [(0, True), (4, True), (4, False), (0, False)])
def test_repair_leaves_out_and_reports_only_what_a_damaged_chunk_makes_unreadable(
    tmp_path, damaged, index
):
    pytest.importorskip('rosbags', reason='needs rosbags')
    pytest.importorskip('mcap', reason='needs mcap')
    from softarm_ros.cli.record_command import repair

    written(tmp_path / 'bag', 1000, flush_every=100)
    path = tmp_path / 'bag' / 'bag.mcap'
    data = bytearray(path.read_bytes())
    chunks = [found.start() for found in re.finditer(re.escape(ZSTD), data)]
    data[chunks[damaged]] ^= 1
    path.write_bytes(data if index else data[: data.rindex(ZSTD)])  # cut within the last chunk
    said = list(repair(tmp_path / 'bag', None))
    whole = [(1000 + i, f'word {i}') for i in range(1000 if index else 900)]
    if damaged or index:
        saved = [word for i, word in enumerate(whole) if i // 100 != damaged]
        assert words(tmp_path / 'bag_repaired') == saved
        assert said[0].startswith(f'{len(saved)} messages')
        assert said[1:] == ['left out, damaged: 0.00 to 0.00 s']
    else:
        assert said[0].startswith('0 messages')
        assert said[2:] == [
            'left out: 800 messages of topics that only the damaged part announced'
        ]


def damaged_length(data, at):
    """Flip the highest bit of the length of the record at an offset."""
    data[at + 8] ^= 0x80


@pytest.mark.parametrize('completed', [True, False])
def test_repair_continues_at_the_next_chunk_after_a_record_with_a_wrong_length(
    tmp_path, completed
):
    pytest.importorskip('rosbags', reason='needs rosbags')
    pytest.importorskip('mcap', reason='needs mcap')
    from softarm_ros.cli.record_command import repair

    written(tmp_path / 'bag', 1000, flush_every=100)
    path = tmp_path / 'bag' / 'bag.mcap'
    data = bytearray(path.read_bytes())
    chunks = [found.start() - 53 for found in re.finditer(re.escape(ZSTD), data)]
    assert [data[at] for at in chunks] == [6] * 10
    (size,) = struct.unpack_from('<Q', data, chunks[4] + 1)
    damaged_length(data, chunks[4] + 9 + size)  # of the message index after a chunk
    damaged_length(data, chunks[7])
    data[data.rindex(b'std_msgs/msg/String')] ^= 1  # in the index at the end of the file
    path.write_bytes(data if completed else data[: chunks[9] + 50])
    said = list(repair(tmp_path / 'bag', None))
    left = [i for i in range(1000 if completed else 900) if i // 100 != 7]
    assert words(tmp_path / 'bag_repaired') == [(1000 + i, f'word {i}') for i in left]
    assert said[0].startswith(f'{len(left)} messages')
    assert said[1:] == ['left out, damaged: 0.00 to 0.00 s, 0.00 to 0.00 s']


def test_repair_reports_a_wrong_length_of_the_last_chunk_of_a_complete_bag(tmp_path):
    pytest.importorskip('rosbags', reason='needs rosbags')
    pytest.importorskip('mcap', reason='needs mcap')
    from softarm_ros.nodes.bag_repair import repair

    written(tmp_path / 'bag', 200, flush_every=100)
    path = tmp_path / 'bag' / 'bag.mcap'
    data = bytearray(path.read_bytes())
    damaged_length(data, data.rindex(ZSTD) - 53)
    path.write_bytes(data)
    saved = repair(tmp_path / 'bag', tmp_path / 'again')
    assert saved.messages == 100
    assert len(saved.damaged) == 1


def test_repair_refuses_a_folder_without_a_bag_and_a_file_that_is_not_mcap(tmp_path):
    pytest.importorskip('mcap', reason='needs mcap')
    from softarm_ros.nodes.bag_repair import repair

    with pytest.raises(BagError, match='0 MCAP files; expected a bag folder with one'):
        repair(tmp_path, tmp_path / 'again')
    (tmp_path / 'some.mcap').write_bytes(b'not a bag at all')
    with pytest.raises(BagError, match='not an MCAP file'):
        repair(tmp_path, tmp_path / 'again')


def test_full_disk_raises_on_write_and_repair_recovers_all_flushed_messages(tmp_path):
    pytest.importorskip('rosbags', reason='needs rosbags')
    pytest.importorskip('mcap', reason='needs mcap')
    from softarm_ros.nodes.bag_repair import repair

    done = subprocess.run(
        [sys.executable, '-c', FULL, str(tmp_path / 'bag')],
        capture_output=True,
        text=True,
        check=True,
    )
    flushed, reason = done.stdout.split('\n')[:2]
    assert reason == 'File too large'
    assert int(flushed) >= 100
    assert repair(tmp_path / 'bag', tmp_path / 'again').messages == int(flushed)


def test_flush_raises_if_the_bag_file_was_deleted(tmp_path):
    pytest.importorskip('rosbags', reason='needs rosbags')
    bag = BagWriter(tmp_path / 'bag')
    bag.add_topic('/said', 'std_msgs/msg/String')
    bag.flush()
    shutil.rmtree(tmp_path / 'bag')
    bag.write('/said', 1000, bytes(8))
    with pytest.raises(OSError, match='its file was moved or deleted'):
        bag.flush()


def test_writer_leaves_the_file_of_a_new_bag_at_its_path_alone(tmp_path):
    pytest.importorskip('rosbags', reason='needs rosbags')
    bag = BagWriter(tmp_path / 'bag')
    bag.add_topic('/said', 'std_msgs/msg/String')
    (tmp_path / 'bag').rename(tmp_path / 'old')
    written(tmp_path / 'bag', 1000)
    bag.write('/said', 1000, bytes(8))
    with pytest.raises(OSError, match='its file was moved or deleted'):
        bag.flush()
    assert len(words(tmp_path / 'bag')) == 1000


def test_writer_uses_a_given_empty_folder_as_it_is(tmp_path):
    pytest.importorskip('rosbags', reason='needs rosbags')
    folder, link = tmp_path / 'shared', tmp_path / 'link'
    folder.mkdir()
    folder.chmod(0o2775)
    link.symlink_to(folder)
    before = folder.stat()
    written(link, 10)
    after = folder.stat()
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)
    assert len(words(link)) == 10


NO_ROOM = """
import resource, sys
from pathlib import Path
from softarm_ros.nodes.bag_writer import BagError, BagWriter
resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))
try:
    BagWriter(Path(sys.argv[1]), {'rig': 'cable_arm'})
except BagError as error:
    print(error)
"""


@pytest.mark.parametrize('exists', [True, False])
def test_full_disk_at_the_start_is_refused_with_the_folder_and_leaves_nothing(tmp_path, exists):
    pytest.importorskip('rosbags', reason='needs rosbags')
    folder = tmp_path / 'bag'
    if exists:
        folder.mkdir()
    done = subprocess.run(
        [sys.executable, '-c', NO_ROOM, str(folder)], capture_output=True, text=True, check=True
    )
    assert done.stdout == f'bag folder {folder} cannot be written: File too large\n'
    assert list(tmp_path.rglob('*')) == ([folder] if exists else [])


REPAIRED_WITHOUT_ROOM = """
import resource, sys
from pathlib import Path
from softarm_ros.cli.main import main

room = Path(sys.argv[1], 'bag.mcap').stat().st_size // 2
resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
sys.argv[:] = ['softarm', 'record', '--repair', sys.argv[1]]
sys.exit(main())
"""


def repaired_by(script, bag):
    """Write a bag of 1000 messages and let a script repair it; return the ended process."""
    written(bag, 1000, flush_every=100)
    return subprocess.run(
        [sys.executable, '-c', script, str(bag)], capture_output=True, text=True, check=False
    )


def test_repair_without_disk_space_ends_with_one_error_and_leaves_no_output(tmp_path):
    pytest.importorskip('rosbags', reason='needs rosbags')
    pytest.importorskip('mcap', reason='needs mcap')
    from softarm_ros.nodes.bag_repair import repair

    done = repaired_by(REPAIRED_WITHOUT_ROOM, tmp_path / 'bag')
    assert done.returncode == 2
    said = ' '.join(done.stderr.split())
    assert 'bag_repaired cannot be written: File too large; the damaged bag' in said
    assert 'Traceback' not in said
    assert not (tmp_path / 'bag_repaired').exists()
    assert repair(tmp_path / 'bag', tmp_path / 'bag_repaired').messages == 1000


REPAIRED_WITH_SIGNAL = """
import os, signal, sys
from softarm_ros.cli.main import main
from softarm_ros.nodes.bag_writer import BagWriter
write = BagWriter.write
def write_and_end(*message):
    write(*message)
    os.kill(os.getpid(), signal.SIGTERM)
BagWriter.write = write_and_end
sys.argv[:] = ['softarm', 'record', '--repair', sys.argv[1]]
sys.exit(main())
"""


def test_repair_ended_by_a_signal_leaves_no_output(tmp_path):
    pytest.importorskip('rosbags', reason='needs rosbags')
    pytest.importorskip('mcap', reason='needs mcap')
    done = repaired_by(REPAIRED_WITH_SIGNAL, tmp_path / 'bag')
    assert done.returncode != 0
    assert 'Traceback' not in done.stderr, done.stderr
    assert not (tmp_path / 'bag_repaired').exists()


ABOUT = {'rig': 'cable_arm', 'seed': '3', 'rig_file': 'name: cable_arm\n# \u00b5\n'}
BEGIN = f"""
import sys
from pathlib import Path
from rosbags.typesys import Stores, get_typestore
from softarm_ros.nodes.bag_writer import BagWriter
store = get_typestore(Stores.LATEST)
kind = store.types['std_msgs/msg/String']
bag = BagWriter(Path(sys.argv[1]), {ABOUT!r})
bag.add_topic('/said', 'std_msgs/msg/String')
def say(i, text):
    data = store.serialize_cdr(kind(data=text), 'std_msgs/msg/String')
    bag.write('/said', 1000 + i, bytes(data))
"""
KILLED = f"""{BEGIN}
for i in range(1000):
    say(i, f'word {{i}}')
    if i % 100 == 99:
        bag.flush()
for i in range(1000, 1050):
    say(i, f'word {{i}}')
print('flushed', flush=True)
sys.stdin.read()
import signal
signal.pause()
"""
FULL = f"""{BEGIN}
import random, resource
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    for i in range(100_000):
        say(i, str(random.random()))
        if i % 100 == 99:
            bag.flush()
except OSError as error:
    print(bag.flushed)
    print(error.strerror)
bag.flush()
bag.close()
"""


def written(folder, count, flush_every=None):
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.LATEST)
    kind = store.types['std_msgs/msg/String']
    bag = BagWriter(folder, ABOUT)
    bag.add_topic('/said', 'std_msgs/msg/String')
    for i in range(count):
        data = store.serialize_cdr(kind(data=f'word {i}'), 'std_msgs/msg/String')
        bag.write('/said', 1000 + i, bytes(data))
        if flush_every is not None and i % flush_every == flush_every - 1:
            bag.flush()
    bag.close()


def words(folder):
    from rosbags.highlevel import AnyReader

    with AnyReader([folder]) as reader:
        return [
            (time, reader.deserialize(raw, connection.msgtype).data)
            for connection, time, raw in reader.messages()
        ]
