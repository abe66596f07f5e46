"""Links, commands, files, tests and classes on the documentation pages exist."""

import ast
import builtins
import re
import shlex
import struct
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.main import get_command

from softarm_reproduction.cli import bench_app, reproduce_app
from softarm_ros.cli.command_group import own_commands
from softarm_ros.rigs import loader
from softarm_ros.rigs.loader import list_rigs
from softarm_ros.runtime.assembly import build_control_loop

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    str(path.relative_to(ROOT))
    for path in [
        ROOT / 'README.md',
        ROOT / 'CONTRIBUTING.md',
        *(ROOT / 'docs').rglob('*.md'),
        *(ROOT / 'firmware').rglob('README.md'),
        ROOT / 'reproduction' / 'README.md',
    ]
)
# Folders to which the path of a source file on a page may be relative.
SOURCES = ('', 'softarm_ros', 'reproduction/softarm_reproduction')
RIGS = {rig.name for rig in list_rigs()}

load_rig = cache(loader.load_rig)


@cache
def text_of(page):
    return (ROOT / page).read_text(encoding='utf-8')


def without_code(text):
    return re.sub(r'^```.*?^```$|`[^`\n]*`', '', text, flags=re.MULTILINE | re.DOTALL)


@cache
def anchors(path):
    """Return the anchors of a page's headings, as GitHub and most renderers form them."""
    plain = re.sub(r'^```.*?^```$', '', path.read_text('utf-8'), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r'^#+ (.*)$', plain, re.MULTILINE)
    return {re.sub(r'[^\w -]', '', line.lower()).replace(' ', '-') for line in headings}


@pytest.mark.parametrize('page', PAGES)
def test_links_point_to_existing_files_and_headings(page):
    for link in re.findall(r'\]\(([^)\s]+)\)', without_code(text_of(page))):
        if re.match(r'\w+:', link):
            continue
        file, _, anchor = link.partition('#')
        target = (ROOT / page).parent / file if file else ROOT / page
        assert target.exists(), f'{page}: {link}'
        if anchor:
            assert anchor in anchors(target.resolve()), f'{page}: {link}'


def test_every_docs_page_can_be_reached_from_the_readme():
    reached, todo = set(), [ROOT / 'README.md']
    while todo:
        page = todo.pop()
        for file in re.findall(r'\]\(([^)\s#]+\.md)', text_of(str(page.relative_to(ROOT)))):
            target = (page.parent / file).resolve()
            if target.is_file() and target not in reached:
                reached.add(target)
                todo.append(target)
    assert set((ROOT / 'docs').resolve().rglob('*.md')) - reached == set()


# -- commands


def calls(page):
    """Yield (shell line, its words) of every command on the page."""
    text = text_of(page)
    blocks = re.findall(r'^```(?:bash|sh|shell)?\n(.*?)^```$', text, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    lines += re.findall(r'^ {4,}(\S.*)$', text, re.MULTILINE)
    lines += [' '.join(code.split()) for code in re.findall(r'(?<!`)`([^`]+)`(?!`)', text)]
    for line in lines:
        for part in re.split(r'\s&&\s', line.removeprefix('$ ')):
            try:
                words = shlex.split(part, comments=True)
            except ValueError:  # an apostrophe in prose
                continue
            if words and words[0] in ('softarm', 'make', 'python'):
                yield part, words


COMMANDS = {command.name: command.imported for command in own_commands()}
COMMANDS |= {
    'bench': lambda: get_command(bench_app),
    'reproduce': lambda: get_command(reproduce_app),
}


@cache
def options(command):
    return {opt for p in COMMANDS[command]().params for opt in (*p.opts, *p.secondary_opts)}


@cache
def arguments(command):
    return [p.name for p in COMMANDS[command]().params if p.param_type_name == 'argument']


@pytest.mark.parametrize('page', PAGES)
def test_documented_commands_rigs_options_trajectories_and_actuators_exist(page):
    for line, words in calls(page):
        if words[0] != 'softarm' or len(words) == 1 or words[1].startswith(('-', '.')):
            continue
        # `softarm rigs|check` names several commands.
        for name in words[1].split('|'):
            assert name in COMMANDS, f'{page}: {line}'
            used = {word.partition('=')[0] for word in words[2:] if word.startswith('--')}
            assert used <= options(name) | {'--help'}, f'{page}: {line}'
            if {'rig', 'rigs'} & set(arguments(name)[:1]):
                rigs = {word for word in words[2:3] if re.fullmatch(r'[a-z_]+', word)}
                assert rigs <= RIGS, f'{page}: {line}'
        if '--trajectory' in words[3:-1] and words[2] in RIGS:
            value = words[words.index('--trajectory') + 1]
            known = load_rig(words[2]).trajectories
            assert value in known or value.isupper() or value.endswith('.yaml'), f'{page}: {line}'
        if words[1] == 'jog' and len(words) > 3 and words[2] in RIGS:
            assert words[3] in load_rig(words[2]).actuator_names, f'{page}: {line}'


@pytest.mark.parametrize('page', PAGES)
def test_documented_make_targets_and_python_modules_exist(page):
    makefiles = {folder: (ROOT / folder / 'Makefile').read_text() for folder in ('', 'firmware')}
    for line, words in calls(page):
        if words[0] == 'make':
            rules = '\n'.join(makefiles.values())
            for target in (word for word in words[1:] if '=' not in word):
                if not target.startswith('-'):
                    assert re.search(rf'^{target}\b[^=]*:', rules, re.MULTILINE), f'{page}: {line}'
        elif '-m' in words:
            module = words[words.index('-m') + 1]
            if module.startswith('softarm'):
                assert find_spec(module) is not None, f'{page}: {line}'


# -- examples in the README


def shown(kind):
    (block,) = re.findall(rf'^```{kind}\n(.*?)^```$', text_of('README.md'), re.M | re.S)
    return block


def test_readme_python_example_runs():
    names = {}
    exec(shown('python'), names)
    assert names['solution'].converged
    assert names['model'].jacobian(names['solution'].actuation).shape == (6, 6)


def test_readme_trajectory_loads_and_is_within_reach(tmp_path):
    file = tmp_path / 'my.yaml'
    file.write_text(shown('yaml'), encoding='utf-8')
    rig = load_rig('cable_arm')
    loop = build_control_loop(rig, str(file))
    assert loop.trajectory.laps == 2
    assert loop.reach.reachable.all()


# -- files


@pytest.mark.parametrize('page', PAGES)
def test_source_files_named_on_pages_exist(page):
    """Checks names with a folder, such as `control/tracker.py`, but no bare file names."""
    for name in re.findall(r'`([\w./*]+/[\w.*{},-]+\.(?:py|c|h|md|yaml|toml|sh))`', text_of(page)):
        starts = [(ROOT / page).parent, *(ROOT / start for start in SOURCES)]
        assert any(any(start.glob(name)) for start in starts), f'{page}: {name}'


@pytest.mark.parametrize('page', PAGES)
def test_test_files_named_on_pages_exist(page):
    names = set(re.findall(r'`(?:[\w/]+/)?(test_\w+\.py)`', text_of(page)))
    found = {path.name for path in ROOT.glob('test/**/test_*.py')}
    found |= {path.name for path in ROOT.glob('reproduction/test/test_*.py')}
    assert names <= found, f'{page}: {sorted(names - found)}'


# -- classes


def members(node):
    """Yield the names of the members of a class: methods, fields and attributes it sets."""
    for inner in ast.walk(node):
        if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield inner.name
        elif isinstance(inner, ast.Attribute):
            yield inner.attr
        elif isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name):
            yield inner.target.id
        elif isinstance(inner, ast.Assign):
            yield from (target.id for target in inner.targets if isinstance(target, ast.Name))


@cache
def classes():
    """Return the names of the members of each class of the source tree."""
    found = {}
    for folder in ('softarm_ros', 'reproduction', 'test', 'launch'):
        for path in (ROOT / folder).rglob('*.py'):
            for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
                if isinstance(node, ast.ClassDef):
                    found.setdefault(node.name, set()).update(members(node))
    return found


# Classes of Python and of ROS messages.
NOT_OURS = {*dir(builtins), 'CompressedImage'}


@pytest.mark.parametrize('page', PAGES)
def test_classes_and_members_named_on_pages_exist(page):
    """Checks names of at least two words, `ArmModel`, alone or as `ArmModel.inverse`."""
    text = re.sub(r'^```.*?^```$', '', text_of(page), flags=re.MULTILINE | re.DOTALL)
    for code in re.findall(r'(?<!`)`([^`\n]+)`(?!`)', text):
        named = re.fullmatch(r'([A-Z][a-z]+(?:[A-Z]\w*)+)(?:\.(\w+))?(?:\(.*\))?', code)
        if named is None or named[1] in NOT_OURS:
            continue
        assert named[1] in classes(), f'{page}: {code}'
        assert named[2] is None or named[2] in classes()[named[1]], f'{page}: {code}'


# -- pictures


@pytest.mark.parametrize(
    'path', sorted((ROOT / 'docs' / 'images').iterdir()), ids=lambda p: p.name
)
def test_images_match_their_suffix_are_legible_and_are_shown_on_a_page(path):
    head = path.read_bytes()[:24]
    start = {'.png': b'\x89PNG\r\n\x1a\n', '.gif': b'GIF89a'}[path.suffix]
    assert head.startswith(start)
    width, height = struct.unpack('>II', head[16:24])
    assert min(width, height) >= 300, (width, height)  # legible on a page
    assert any(f'images/{path.name})' in text_of(page) for page in PAGES)


def test_readme_has_at_most_200_lines_and_decision_records_at_most_50():
    assert len(text_of('README.md').splitlines()) <= 200
    for page in PAGES:
        if page.startswith('docs/decisions/'):
            assert len(text_of(page).splitlines()) <= 50, page


def test_every_decision_record_is_listed_in_the_decisions_readme():
    folder = ROOT / 'docs' / 'decisions'
    listed = re.findall(r'^\| \[[^]]+\]\((\w+\.md)\)', text_of('docs/decisions/README.md'), re.M)
    assert sorted(listed) == sorted({path.name for path in folder.glob('*.md')} - {'README.md'})
