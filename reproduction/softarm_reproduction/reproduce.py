"""`softarm reproduce`: run the experiments of the arms' papers, one page per arm."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from softarm_reproduction.experiment_page import console_tables, write_page
from softarm_reproduction.experiments import Experiment, Row
from softarm_reproduction.nominal import NOMINAL
from softarm_reproduction.tracking_study import TrackedPath, track, tracking_experiment
from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.cli.report_files import prepare_folder
from softarm_ros.cli.report_html import escape, page
from softarm_ros.cli.run_command import compile_kernels
from softarm_ros.rigs.errors import did_you_mean, listed
from softarm_ros.rigs.loader import load_rig
from softarm_ros.whole_file import write_text


@dataclass(frozen=True)
class Study:
    """
    The experiments of one arm.

    Attributes
    ----------
    module : str
        Module with the function `experiments(progress, seed)`; imported when it runs.
    title, lead : str
        Title and introduction of the page.
    tracked : tuple of str
        Trajectories of the rig to drive in open and in closed loop.
    tracking_text : str
        The paper's statements on tracking.
    tracking_rows : callable
        Returns rows with the paper's numbers and ours, from the tracked paths.

    """

    module: str
    title: str
    lead: str
    tracked: tuple[str, ...]
    tracking_text: str = ''
    tracking_rows: Callable[[Sequence[TrackedPath]], tuple[Row, ...]] = lambda paths: ()


STUDIES = {
    'cable_arm': Study(
        'softarm_reproduction.cable_arm_experiments',
        'cable_arm: the experiments of Qi et al. 2024',
        'Two-section cable-driven arm whose cables cut into the soft body.',
        ('circle', 'line', 'circle_small', 'line_small'),
        'The paper drives in open loop only.',
    ),
    'hydraulic_arm': Study(
        'softarm_reproduction.hydraulic_arm_experiments',
        'hydraulic_arm: the experiments of Chen et al. 2022',
        'Two-section arm with six water chambers on servo cylinders.',
        ('circle', 'line', 'ramps'),
        'The paper drives in open loop only; `ramps` is the tip path of its ramps (4.3.2).',
    ),
    'fishbone_arm': Study(
        'softarm_reproduction.fishbone_arm_experiments',
        'fishbone_arm: the experiments of Zhou et al. 2023',
        'Two modules of two crossed strips in a sleeve, bent by cables under tension.',
        ('circle', 'line', 'around_ball'),
        'The paper measures at rest and tracks nothing; here the load cells differ between seeds.',
    ),
    'pneumatic_arm': Study(
        'softarm_reproduction.pneumatic_experiments',
        'pneumatic_arm: the experiments of Gong et al. 2018',
        'Two-section pneumatic arm whose mounts sag, with a soft gripper, in air and in water.',
        ('circle', 'line', 'sweep'),
        'The paper drives in open loop only, with a location error below 5.7 mm.',
    ),
    'pam_arm': Study(
        'softarm_reproduction.pam_arm_study',
        'pam_arm: the experiments of Chen et al. 2022',
        'Ten modules of three vacuum muscles on an elastic backbone, behind sixty valves.',
        ('circle', 'line', 'square', 'cardioid'),
        'The paper measures the tip but drives in open loop, from point to point; its numbers '
        'stand beside ours below.',
    ),
    'trunk': Study(
        'softarm_reproduction.trunk_experiments',
        'trunk: recordings of the Stanford ASL trunk, predicted',
        'Three sections, twelve tendons in six antagonistic pairs; known from recordings alone '
        '(docs/add_your_arm.md).',
        ('circle', 'line', 'square'),
        'There are recordings of this arm, but none of it being controlled along these paths: '
        'the plant has assumed parameters, and the controller what was identified.',
    ),
}


def reproduce(
    arms: Sequence[str], folder: Path, console: Console, *, seeds: int = 5, seed: int = 0
) -> None:
    """
    Run the experiments of the given arms (default: all), print tables, write a page for each.

    Raises
    ------
    UsageError
        If an arm has no experiments, or a folder cannot be used.

    """
    for arm in arms:
        if arm not in STUDIES:
            hint = did_you_mean(arm, STUDIES)
            raise UsageError(
                f'no experiments of a paper are known for {arm!r}{hint}; known: {listed(STUDIES)}'
            )
    wanted = tuple(dict.fromkeys(arms)) or tuple(STUDIES)
    for arm in wanted:
        prepare_folder(folder / arm)
    pages = {}
    for arm in wanted:
        found = run_study(arm, console, seeds=seeds, seed=seed)
        for experiment in found:
            for shown in console_tables(experiment):
                console.print(shown)
        pages[arm] = write_page(STUDIES[arm].title, STUDIES[arm].lead, found, folder / arm)
        console.print(f'page: {pages[arm]}', markup=False)
    if len(pages) > 1:
        console.print(f'index: {_write_index(pages, folder)}', markup=False)


def run_study(arm: str, console: Console, *, seeds: int, seed: int) -> list[Experiment]:
    """Run all experiments of one arm, tracking first."""
    study, rig = STUDIES[arm], load_rig(arm, NOMINAL)
    compile_kernels(rig, console)
    module: Any = importlib.import_module(study.module)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(f'{arm}: tracking', total=len(study.tracked) * (1 + seeds))
        paths = track(
            rig,
            study.tracked,
            range(seed, seed + seeds),
            progress=lambda done: bar.update(task, completed=done),
        )
        task = bar.add_task(arm, total=None)
        others: list[Experiment] = module.experiments(
            lambda text: bar.update(task, description=f'{arm}: {text}'), seed
        )
    return [tracking_experiment(paths, study.tracking_rows(paths), study.tracking_text), *others]


def _write_index(pages: dict[str, Path], folder: Path) -> Path:
    items = ''.join(
        f'<li><a href="{escape(file.relative_to(folder))}">{escape(STUDIES[arm].title)}</a></li>'
        for arm, file in pages.items()
    )
    file = folder / 'index.html'
    lead = 'Each page states what is a prediction of a model and what a simulated plant does.'
    write_text(file, page('The arms and their papers', lead, [f'<ul>{items}</ul>']))
    return file
