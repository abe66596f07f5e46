"""Damaged bags and folders without a bag: one clear BagError, none of the reading library."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('rosbags', reason='needs rosbags')

from rosbags.typesys import Stores, get_typestore

from softarm_ros.cli.viewer.bag_states import BagStates
from softarm_ros.nodes.bag_messages import messages_of, topics_of
from softarm_ros.nodes.bag_repair import about_of, find_mcap
from softarm_ros.nodes.bag_writer import BagError, BagWriter
from softarm_ros.rigs.loader import load_rig

STRING = 'std_msgs/msg/String'


@pytest.fixture
def bag(tmp_path):
    """Return a bag of 300 messages of random text, which compresses little."""
    store = get_typestore(Stores.LATEST)
    rng = np.random.default_rng(4)
    writer = BagWriter(tmp_path / 'bag')
    writer.add_topic('/said', STRING)
    for i in range(300):
        text = ''.join(map(chr, rng.integers(33, 126, 200)))
        data = store.serialize_cdr(store.types[STRING](data=text), STRING)
        writer.write('/said', 1000 + i, bytes(data))
    writer.close()
    return tmp_path / 'bag'


def mcap_of(bag):
    return next(bag.glob('*.mcap'))


def remove_metadata(bag):
    (bag / 'metadata.yaml').unlink()


def remove_all(bag):
    for path in bag.iterdir():
        path.unlink()


def noise_for_metadata(bag):
    (bag / 'metadata.yaml').write_bytes(bytes(range(128, 256)))


def empty_metadata(bag):
    (bag / 'metadata.yaml').write_bytes(b'')


def broken_yaml(bag):
    (bag / 'metadata.yaml').write_text('rosbag2_bagfile_information: [')


def cut_off(bag):
    data = mcap_of(bag).read_bytes()
    mcap_of(bag).write_bytes(data[: len(data) // 2])


def spoil_chunks(bag):
    """Damage the magic number of Zstandard at the start of every compressed chunk."""
    data = mcap_of(bag).read_bytes()
    assert b'\x28\xb5\x2f\xfd' in data
    mcap_of(bag).write_bytes(data.replace(b'\x28\xb5\x2f\xfd', b'\xd7\x4a\xd0\x02'))


def empty_mcap(bag):
    mcap_of(bag).write_bytes(b'')


def two_files_without_metadata(bag):
    (bag / 'other.mcap').write_bytes(mcap_of(bag).read_bytes())
    remove_metadata(bag)


def no_mcap(bag):
    mcap_of(bag).unlink()


@pytest.mark.parametrize(
    'read',
    [lambda bag: BagStates.read(bag, load_rig('trunk')), lambda bag: list(messages_of(bag))],
)
@pytest.mark.parametrize(
    ('damage', 'said'),
    [
        (remove_metadata, r'not a bag: no metadata\.yaml; .*--repair'),
        (remove_all, r'not a bag: no metadata\.yaml$'),
        (noise_for_metadata, 'cannot be read: .*--repair'),
        (empty_metadata, 'cannot be read: .*--repair'),
        (broken_yaml, 'cannot be read: .*--repair'),
        (cut_off, 'cannot be read: .*--repair'),
        (no_mcap, 'cannot be read: .*missing'),
        (empty_mcap, 'cannot be read: (?!.*--repair)'),
        (two_files_without_metadata, r'not a bag: no metadata\.yaml$'),
    ],
)
def test_reading_a_damaged_or_incomplete_bag_raises_a_bag_error_with_its_name(
    bag, damage, said, read
):
    damage(bag)
    with pytest.raises(BagError, match=rf'(?s){bag.name}: {said}'):
        read(bag)


def test_advised_repair_of_a_folder_with_spaces_can_be_pasted(bag):
    named = bag.rename(bag.with_name('my bag'))
    remove_metadata(named)
    with pytest.raises(BagError, match=r"softarm record --repair '.*/my bag'$"):
        list(messages_of(named))


def test_bag_folder_with_the_suffix_of_ros_1_is_read(bag):
    named = bag.rename(bag.with_name('monday.bag'))
    assert len(list(messages_of(named))) == 300


def test_one_of_several_files_of_a_bag_is_refused_and_the_only_one_read(bag):
    assert len(list(messages_of(bag / 'bag.mcap'))) == 300
    (bag / 'other.mcap').write_bytes((bag / 'bag.mcap').read_bytes())
    with pytest.raises(BagError, match=r'other.mcap: .* has the files bag.mcap; expected its fol'):
        list(messages_of(bag / 'other.mcap'))
    metadata = bag / 'metadata.yaml'
    text = metadata.read_text()
    first = next(line for line in text.splitlines() if line.strip() == '- bag.mcap')
    metadata.write_text(text.replace(first, f'{first}\n{first.replace("bag", "other")}', 1))
    assert len(list(messages_of(bag))) == 600
    with pytest.raises(BagError, match=r'has the files bag.mcap, other.mcap; expected its folder'):
        list(messages_of(bag / 'bag.mcap'))


@pytest.mark.parametrize('read', [about_of, topics_of, lambda bag: list(messages_of(bag))])
def test_a_file_of_another_recording_in_the_folder_is_refused(bag, read):
    """It was ignored, but its rig was taken if its name came first."""
    assert read(bag / 'bag.mcap') is not None
    (bag / 'another.mcap').write_bytes((bag / 'bag.mcap').read_bytes())
    with pytest.raises(BagError, match=r'bag: .*another.mcap would be ignored: .* only bag.mcap;'):
        read(bag)
    assert read(bag / 'bag.mcap') is not None


def test_file_that_is_no_bag_is_named(tmp_path, monkeypatch):
    (tmp_path / 'run.json').write_text('{}')
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BagError, match=r'^run\.json: not a bag: no metadata\.yaml$'):
        about_of(Path('run.json'))
    with pytest.raises(BagError, match=r'^monday: no such bag$'):
        find_mcap(Path('monday'))


def test_reading_a_damaged_chunk_raises_a_bag_error_but_topics_are_listed(bag):
    assert len(list(messages_of(bag))) == 300
    spoil_chunks(bag)
    assert list(topics_of(bag)) == ['/said']
    with pytest.raises(BagError, match=r'(?s)cannot be read: .*--repair'):
        list(messages_of(bag))


def test_flipped_bit_in_a_chunk_raises_a_bag_error(tmp_path):
    """Some flipped bits still decompress: only the checksum shows the damage."""
    store = get_typestore(Stores.LATEST)
    writer = BagWriter(tmp_path / 'bag')
    writer.add_topic('/said', STRING)
    rng = np.random.default_rng(4)
    text = ''.join(map(chr, rng.integers(33, 126, 200)))
    for i in range(20):
        data = store.serialize_cdr(store.types[STRING](data=f'{i} {text}'), STRING)
        writer.write('/said', 1000 + i, bytes(data))
    writer.close()
    path = mcap_of(tmp_path / 'bag')
    whole = path.read_bytes()
    chunk = whole.index(b'\x28\xb5\x2f\xfd')
    told = 0
    for at in range(chunk + 20, chunk + 220):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        with pytest.raises(BagError, match='cannot be read') as refused:
            list(messages_of(tmp_path / 'bag'))
        told += 'checksum' in str(refused.value)
    assert told > 0
