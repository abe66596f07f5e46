"""Code blocks of the pages run as they stand; YAML is read as part of a rig."""

import re

import pytest
from ruamel.yaml import YAML
from test_every_page import PAGES, ROOT, text_of

from softarm_ros.drivers.daq import DaqDriver
from softarm_ros.drivers.servo import ServoDriver
from softarm_ros.rigs.loader import load_rig
from softarm_ros.rigs.rig_files import find_rig
from softarm_ros.rigs.task_file import load_task

# Run elsewhere: test_every_page.py, test_add_your_arm.py; the last is for devices, see below.
ELSEWHERE = {'README.md', 'docs/add_your_arm.md', 'docs/drivers.md'}
# The rig file whose blocks a YAML block replaces; other YAML blocks are task files.
RIGS = {
    'docs/cameras.md': find_rig('cable_arm'),
    'docs/feedback.md': find_rig('cable_arm'),
    'docs/machines.md': find_rig('cable_arm'),
    'docs/recording.md': ROOT / 'reproduction' / 'rigs' / 'stiffflop_pneumatic.yaml',
    'docs/rigs.md': find_rig('cable_arm'),
}


def blocks(kind):
    """Return page and text of each code block of this kind."""
    found = []
    for page in PAGES:
        texts = re.findall(rf'^```{kind}\n(.*?)^```$', text_of(page), re.M | re.S)
        found += [(page, text) for text in texts if page not in ELSEWHERE]
    return found


@pytest.mark.parametrize(('page', 'block'), blocks('python'), ids=lambda text: text[:30])
def test_python_block_runs(page, block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = find_rig('cable_arm').read_text(encoding='utf-8')
    (tmp_path / 'my_arm.yaml').write_text(text, encoding='utf-8')
    exec(compile(block, page, 'exec'), {'__name__': 'page'})


@pytest.mark.parametrize(('page', 'block'), blocks('yaml'), ids=lambda text: text[:30])
def test_yaml_block_is_valid_in_a_rig_or_as_a_task(page, block, tmp_path):
    file = tmp_path / 'own.yaml'
    if page not in RIGS:
        file.write_text(block, encoding='utf-8')
        load_task(str(file))
        return
    yaml = YAML(typ='safe')
    rig, fields = yaml.load(RIGS[page]), yaml.load(block)
    for name, value in fields.items():
        # What a page states of the simulated arm is one block of many.
        rig[name] = rig[name] | value if name == 'plant' else value
    yaml.dump(rig, file)
    load_rig(file)


def test_methods_of_drivers_in_the_block_of_their_page_exist():
    (block,) = re.findall(r'^```python\n(.*?)^```$', text_of('docs/drivers.md'), re.M | re.S)
    called = set(re.findall(r'driver\.(\w+)\(', block))
    assert called and called - {'set_torque'} <= set(dir(DaqDriver))
    assert called <= set(dir(ServoDriver))
    assert {'set_outputs', 'set_output', 'set_line'} <= set(dir(DaqDriver)) & set(
        re.findall(r'\w+', block)
    )
