import pytest

from softarm_ros.nodes.bag_writer import BagError, BagWriter, check_bag_folder


def test_a_new_or_empty_folder_is_taken_and_nothing_is_left(tmp_path):
    check_bag_folder(tmp_path / 'new' / 'deep')
    assert list(tmp_path.iterdir()) == []
    (tmp_path / 'empty').mkdir()
    check_bag_folder(tmp_path / 'empty')
    assert list((tmp_path / 'empty').iterdir()) == []


def test_a_folder_in_use_is_refused(tmp_path):
    (tmp_path / 'old.mcap').write_text('x')
    with pytest.raises(BagError, match=r'is not empty; expected a new or empty folder'):
        check_bag_folder(tmp_path)


def test_a_file_is_refused(tmp_path):
    path = tmp_path / 'file'
    path.write_text('x')
    with pytest.raises(BagError, match='is a file'):
        check_bag_folder(path)
    with pytest.raises(BagError, match=r'cannot be written: Not a directory'):
        check_bag_folder(path / 'bag')
    assert path.read_text() == 'x'


def test_written_messages_come_back(tmp_path):
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
