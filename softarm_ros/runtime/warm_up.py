"""Compile every kernel once, so that nothing compiles while an arm moves."""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numba.core import event

from softarm_ros.emulation.emulated_sensor import LookingSensor
from softarm_ros.geometry.poses import rows_from_transforms, transforms_from_rows
from softarm_ros.leftovers import temporary_folder
from softarm_ros.models.arm_model import ArmModel, ModelError
from softarm_ros.own_module import own_module
from softarm_ros.rigs.errors import RigError
from softarm_ros.runtime.arm_assembly import (
    build_emulated_arm,
    build_emulated_sensor,
    build_plant,
)
from softarm_ros.runtime.assembly import build_estimator, build_tracker
from softarm_ros.runtime.compiled_mark import CompiledMark
from softarm_ros.runtime.part_failure import FAILURES, no_bug

_AWAY = 0.3
_COLLECT_AFTER = 100_000  # objects; Python's default is 700 (2000 from 3.13 on)

if TYPE_CHECKING:
    from softarm_ros.rigs.schema import Rig


def prepare(rig: Rig, backend: str = 'sim') -> None:
    """
    Compile to disk every kernel that processes of a rig need, without loading it in this process.

    Calls `warm_up`, unless that has been done and nothing has changed since.
    """
    mark = CompiledMark(rig)
    if not mark.holds():
        warm_up(rig)
        mark.set()
    if backend == 'emulated':
        _start_devices(rig)


def warm_up(rig: Rig, backend: str = 'sim', models: Sequence[str] | None = None) -> None:
    """
    Call once every model of a rig (or those in `models`), and its plant if it has one.

    If `models` is None, models that refuse the arm are skipped, and those of other packages that
    fail: a run with one reports why.
    Numba keeps the results on disk: tens of seconds the first time, one or two afterwards. If
    something has to be compiled, a second process compiles the plant in parallel. With `backend`
    'emulated', the devices are also started once, which builds their firmware.
    """
    with _rare_collections():
        transforms_from_rows(rows_from_transforms(np.eye(4)))
        simulated = rig.plant is not None
        with _plant_beside(rig) if simulated else contextlib.nullcontext():
            for name in rig.model_names if models is None else models:
                try:
                    _warm_up_model(rig, rig.model(name))
                except FAILURES as error:
                    if models is not None or not no_bug(name, error):
                        raise
        if simulated:
            _warm_up_plant(rig)
    if backend == 'emulated':
        _start_devices(rig)


def _start_devices(rig: Rig) -> None:
    """Start the emulated devices of a rig once, which builds their firmware."""
    with temporary_folder() as folder:
        arm = build_emulated_arm(rig, seed=0)
        try:
            arm.start(Path(folder))
        finally:
            arm.close()
    for name in rig.sensors.devices():
        sensor = build_emulated_sensor(rig, name, seed=0)
        if isinstance(sensor, LookingSensor):
            sensor.load_code()


@contextlib.contextmanager
def _rare_collections() -> Iterator[None]:
    """Collect garbage rarely: collections would take a fifth of the compilation time."""
    usual = gc.get_threshold()
    gc.set_threshold(_COLLECT_AFTER, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)


@contextlib.contextmanager
def _plant_beside(rig: Rig) -> Iterator[None]:
    """
    Start a process that compiles the plant once this one starts compiling; wait for it at the end.

    If it fails, this process compiles the plant afterwards and reports the errors.
    """
    started = _StartOnCompile(rig)
    event.register('numba:compile', started)
    try:
        yield
        if started.process is not None:
            started.process.wait()
    finally:
        event.unregister('numba:compile', started)
        if started.process is not None and started.process.poll() is None:
            started.process.kill()
            started.process.wait()


class _StartOnCompile(event.Listener):
    """Starts the plant's process on the first compilation, if there is a second core."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self.process: subprocess.Popen[bytes] | None = None

    def on_start(self, event: Any) -> None:
        if self.process is not None or (os.cpu_count() or 1) < 2:
            return
        self.process = subprocess.Popen(
            own_module('softarm_ros.runtime.warm_up'),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError), self.process.stdin as pipe:
            pickle.dump(self._rig, pipe)

    def on_end(self, event: Any) -> None:
        """Do nothing: only the start of a compilation matters."""


def _warm_up_plant(rig: Rig) -> None:
    """Move the plant a little, without the controller's model, which is compiled elsewhere."""
    plant = build_plant(rig, seed=0)
    plant.step(plant.drives.state().position, 0.02)
    plant.poll_poses()
    plant.true_centerline(5)


def _warm_up_model(rig: Rig, model: ArmModel) -> None:
    rest = model.rest_configuration
    somewhere = rig.sample_configurations(np.random.default_rng(0), 1)[0]
    # Some models take a shortcut at rest, so also call them near it, and search from rest.
    known = None
    for configuration in (rest, rest + _AWAY * (somewhere - rest)):
        with contextlib.suppress(ModelError):
            shape = model.shape_of(configuration)
            shape.centerline(3)
            model.tips_of(configuration[None])
            model.observed_configuration(shape.section_tips)
            model.preferred_configuration(configuration)
            actuation = model.actuation_of(configuration)
            model.forward(actuation)
            model.jacobian(actuation)
            model.inverse(shape.tip[:3, 3], shape.tip[:3, :3], guess=known)
            known = actuation
    with contextlib.suppress(RigError):  # the rig has a load that this model cannot include
        build_estimator(rig, model)
    tracker = build_tracker(rig, model)
    tracker.step(np.zeros(3), np.zeros(3), 1.0 / rig.tracker.rate_hz)
    with contextlib.suppress(ValueError):  # whoever moves the arm reports that rest is not allowed
        tracker.configuration_limits.check(rest, model.configuration_names)


if __name__ == '__main__':
    with _rare_collections():
        _warm_up_plant(pickle.load(sys.stdin.buffer))
