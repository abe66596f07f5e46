"""Files that are not rigs, and unknown names of rigs, are refused in one line."""

import pytest

from softarm_ros.rigs.loader import RigError, list_rigs, load_rig


@pytest.mark.parametrize(
    ('content', 'message'),
    [
        ('', 'the file is empty; expected a mapping of fields'),
        ('# only a comment\n', 'the file is empty; expected a mapping of fields'),
        ('- a\n- b\n', '1: expected a mapping of fields, found a list'),
        ('hello\n', "1: expected a mapping of fields, found the single value 'hello'"),
        ('a: [1, 2\nb: 3\n', '2: not valid YAML: '),
        ('a: 1\n\tb: 2\n', '2: not valid YAML: '),
        ('a: 1\n--- \nb: 2\n', '2: not valid YAML: '),
        ('a: *nothing\n', '1: not valid YAML: '),
        ('a: !!python/object:os.system x\n', 'not valid YAML'),
        ('a: \x00\n', 'not valid YAML: '),
    ],
)
def test_text_that_is_not_a_rig_is_refused_in_one_line(content, message, tmp_path):
    path = tmp_path / 'rig.yaml'
    path.write_text(content)
    with pytest.raises(RigError) as error:
        load_rig(path)
    assert str(error.value).startswith(f'{path}:')
    assert message in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_yaml_alias_that_contains_itself_is_refused(tmp_path):
    path = tmp_path / 'rig.yaml'
    path.write_text('name: x\nplant: &p\n  sections: *p\n')
    with pytest.raises(RigError, match='contains itself by an alias'):
        load_rig(path)


def test_missing_file_folder_binary_and_endless_file_are_refused(tmp_path):
    with pytest.raises(RigError, match=r'nowhere\.yaml: no such file'):
        load_rig(tmp_path / 'nowhere.yaml')
    with pytest.raises(RigError, match='is a folder; expected a YAML file'):
        load_rig(tmp_path)
    (tmp_path / 'bytes.yaml').write_bytes(b'\xff\xfe\x00\x01name')
    with pytest.raises(RigError, match='is not text in UTF-8'):
        load_rig(tmp_path / 'bytes.yaml')
    with pytest.raises(RigError, match=r'/dev/zero: larger than 4000000 characters'):
        load_rig('/dev/zero')


def test_unknown_rig_name_is_refused_with_a_suggestion_and_a_folder_too(tmp_path, monkeypatch):
    with pytest.raises(RigError) as error:
        load_rig('cabel_arm')
    known = ', '.join(repr(info.name) for info in list_rigs())
    assert str(error.value) == (
        f"unknown rig 'cabel_arm' (did you mean 'cable_arm'?); known: {known}, or a .yaml file"
    )
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'results').mkdir()
    with pytest.raises(RigError, match=r'results: is a folder; expected a rig file'):
        load_rig('results')


def test_empty_name_is_refused_as_a_name():
    with pytest.raises(RigError, match=r"unknown rig ''; known: 'cable_arm'"):
        load_rig('')
