"""Frames on /tf as a pose sensor."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence

from softarm_ros.clock import MONOTONIC, Clock
from softarm_ros.geometry.poses import rows_from_transforms
from softarm_ros.geometry.sightings import Sighting
from softarm_ros.perception.captured import (
    LONGEST_LATENCY_S,
    CapturedBody,
    CapturedFrame,
    CorruptFrameError,
)
from softarm_ros.perception.frame_sensor import FrameSensor
from softarm_ros.perception.sensor import SensorProblem
from softarm_ros.perception.tf.config import TfConfig
from softarm_ros.perception.tf.frame_tree import Chain, FrameTransform, Link, chain_to

ONE_EXPOSURE_NS = 500_000  # stamps of one exposure differ by less, even if set for each body
COMPLETE_S = 3.0e-3  # an incomplete exposure is taken after this time
AHEAD_S = 5.0e-3  # lead that a network-synchronised clock may have over this one
WAITING = 1000  # messages in the queue; more than arrive while a reader is late by a second


class TfSensor(FrameSensor[TfConfig]):
    """
    Turns transforms into sightings; a `PoseSensor` and a `TransformSensor`.

    Transforms of one stamp are one exposure, in one message or several. A body may be connected to
    `frame` through other frames, either static or of the same stamp. All further frames belong to
    other robots and are ignored. Stamps are trusted: the clocks of both computers must agree. A
    body of the arm that is static, in `frame` or on the base, is not measured and not used.
    """

    def __init__(self, config: TfConfig, frame_id: str, clock: Clock = MONOTONIC) -> None:
        super().__init__(config, frame_id, clock)
        self._wanted = tuple(body.name for body in config.bodies)
        base = config.base_body
        self._base_name = '' if base is None else base.name
        self._news = clock.condition()
        self._queue: deque[tuple[Sequence[FrameTransform], bool, int, float]] = deque()
        self._open = False
        self._begin()

    def _begin(self) -> None:
        """Reset all knowledge of the publisher."""
        self._static: dict[str, Link] = {}
        self._parents: dict[str, str] = {}
        self._relevant = set(self._wanted)
        self._found: set[str] = set()
        self._stamp_ns = self._last_ns = 0
        self._moving: dict[str, Link] = {}
        self._received_ns, self._arrived_s, self._last_s = 0, 0.0, float('-inf')
        self._loose_since: dict[str, float] = {}  # bodies whose chain ends elsewhere
        self._unused = (float('-inf'), '')  # when a stamp was last refused, and why
        self._number = 0

    def take_transforms(
        self, transforms: Sequence[FrameTransform], *, static: bool, received_ns: int
    ) -> None:
        """
        Take the transforms of a message; any thread may call it.

        `received_ns` is the present time on the clock of the stamps.
        """
        with self._news:
            if self._open and len(self._queue) < WAITING:
                self._queue.append((transforms, static, received_ns, self._clock.now_s()))
                self._news.notify()

    def close(self) -> None:
        """See `PoseSensor`."""
        with self._news:
            self._open = False
            self._queue.clear()
            self._news.notify()

    def _listen(self) -> None:
        self._begin()
        with self._news:
            self._open = True

    def _listening(self) -> bool:
        return self._open

    def _bodies_of_device(self) -> Iterable[str] | None:
        return self._parents or None

    # -- transforms

    def _receive(self, left_s: float) -> list[Sighting]:
        with self._news:
            if not self._queue and self._open:
                self._news.wait(min(left_s, COMPLETE_S if self._moving else 0.1))
            news = [self._queue.popleft() for _ in range(len(self._queue))]
        seen: list[Sighting] = []
        for transforms, static, received_ns, arrived_s in news:
            for transform in transforms:
                seen += self._follow(transform, static, received_ns, arrived_s)
        if self._moving and self._clock.now_s() - self._arrived_s >= COMPLETE_S:
            seen += self._exposure()
        return seen

    def _follow(
        self, transform: FrameTransform, static: bool, received_ns: int, arrived_s: float
    ) -> list[Sighting]:
        child = transform.child
        try:
            link = transform.link()
        except CorruptFrameError as error:
            if child in self._wanted:
                self._refuse(arrived_s, error)
            return []
        if self._parents.get(child) != link.parent:
            self._parents[child] = link.parent
            self._relevant = self._ancestry()
        if static:
            self._static[child] = link
            return []
        self._static.pop(child, None)  # it moves now
        if child not in self._relevant:
            return []
        seen: list[Sighting] = []
        apart_ns = abs(transform.stamp_ns - self._stamp_ns)
        if self._moving and (child in self._moving or apart_ns > ONE_EXPOSURE_NS):
            seen += self._exposure()
        if not self._moving:
            self._stamp_ns = transform.stamp_ns
            self._received_ns, self._arrived_s = received_ns, arrived_s
        self._moving[child] = link
        if all(chain.last == self.config.frame for chain in self._chains().values()):
            seen += self._exposure()
        return seen

    def _ancestry(self) -> set[str]:
        """Return the bodies and the frames between them and `frame`."""
        found: set[str] = set()
        for name in self._wanted:
            frame: str | None = name
            while frame is not None and frame != self.config.frame and frame not in found:
                found.add(frame)
                frame = self._parents.get(frame)
        return found

    def _chains(self) -> dict[str, Chain]:
        """Return the present chain of each body towards `frame`."""
        links = {**self._static, **self._moving}
        return {name: chain_to(self.config.frame, name, links) for name in self._wanted}

    def _exposure(self) -> list[Sighting]:
        """Return the sighting, if any, of the transforms of one stamp, and discard these."""
        chains = self._chains()
        moved, self._moving = self._moving, {}
        tied = {name: chain for name, chain in chains.items() if chain.last == self.config.frame}
        for name in self._fixed(tied, moved):
            del tied[name]
            self._intake.problems.report(self._arrived_s, 3, _static(name))
        found = {name: chain.pose for name, chain in tied.items()}
        measured = any(moved.keys() & set(chain.passed) for chain in tied.values())
        self._note_loose(chains)
        self._found |= found.keys()
        if not measured:
            return []
        if wrong := self._wrong_stamp():
            self._unused = (self._arrived_s, wrong)
            self._refuse(self._arrived_s, CorruptFrameError(wrong))
            return []
        if not self._newer():
            return []
        rows = {name: rows_from_transforms(X[None])[0].tolist() for name, X in found.items()}
        self._number += 1
        stamp_ns = self._stamp_ns
        if 0 < stamp_ns - self._received_ns <= round(1e9 * AHEAD_S):
            stamp_ns = self._received_ns
        frame = CapturedFrame(
            self._number,
            1e-9 * stamp_ns,
            1e-9 * self._received_ns,
            self._arrived_s,
            tuple(CapturedBody(n, tuple(row[:3]), tuple(row[3:])) for n, row in rows.items()),
            (),
            tuple(self._found - found.keys()),
        )
        try:
            frame.check()
        except CorruptFrameError as error:
            self._refuse(self._arrived_s, error)
            return []
        sighting = self._intake.take(frame)
        return [] if sighting is None else [sighting]

    def _fixed(self, tied: Mapping[str, Chain], moved: Collection[str]) -> list[str]:
        """Return the bodies of the arm on chains without a moved link of their own."""
        base = tied.get(self._base_name)
        below = set() if base is None else set(base.passed)
        arm = (name for name in tied if name != self._base_name)
        return [name for name in arm if not set(moved) & (set(tied[name].passed) - below)]

    def _wrong_stamp(self) -> str:
        """Return why the stamp cannot be that of this exposure, with value and limit, or ''."""
        age_s = 1e-9 * (self._received_ns - self._stamp_ns)
        if self._stamp_ns == 0:
            return 'it has no stamp (0): expected the time of its exposure'
        if age_s < -AHEAD_S:
            return (
                f'its stamp lies {-1e3 * age_s:.1f} ms in the future (limit {1e3 * AHEAD_S:g} ms)'
            )
        if age_s > LONGEST_LATENCY_S:
            return f'its stamp is {age_s:.1f} s old (limit {LONGEST_LATENCY_S:g} s)'
        return ''

    def _newer(self) -> bool:
        """Return whether an exposure is newer than the last one; after a pause, any is."""
        paused = self._arrived_s - self._last_s > self.config.timeout_s
        if self._stamp_ns <= self._last_ns and not paused:
            self._intake.problems.report(
                self._arrived_s,
                2,
                SensorProblem(
                    'out-of-order',
                    '/tf',
                    f'a stamp {1e-6 * (self._last_ns - self._stamp_ns):.1f} ms before the last',
                    'look for two programs that publish the same frames',
                ),
            )
            return False
        self._last_ns, self._last_s = self._stamp_ns, self._arrived_s
        return True

    # -- what is wrong

    def _refuse(self, now_s: float, error: CorruptFrameError) -> None:
        self._report_corrupt(
            now_s,
            '/tf',
            f'a transform was not used: {error}',
            'check the program that publishes it; the clocks of both computers must agree',
        )

    def _note_loose(self, chains: dict[str, Chain]) -> None:
        """Report bodies that have been published for a while, but relative to another frame."""
        now = self._arrived_s
        for name, chain in chains.items():
            end = chain.last
            if end in (self.config.frame, name):  # connected, or unpublished (see intake)
                self._loose_since.pop(name, None)
                continue
            since = self._loose_since.setdefault(name, now)
            if now - since > self.config.timeout_s:
                self._intake.problems.report(
                    now,
                    1,
                    SensorProblem(
                        'wrong-frame',
                        name,
                        f'is given in {end!r}, which no transform ties to {self.config.frame!r}',
                        'write that frame into the rig file, or publish a transform between them',
                    ),
                )

    def _silence(self) -> SensorProblem:
        """Return the problem that explains why no frames arrive."""
        names = ', '.join(self._wanted)
        unused_s, why = self._unused
        if self._clock.now_s() - unused_s <= self.config.timeout_s:
            return SensorProblem(
                'no-frames',
                '/tf',
                f'transforms of {", ".join(sorted(self._found))} arrive but are not used: {why}',
                'check the program that publishes them; the clocks of both computers must agree',
            )
        if self._last_s > float('-inf'):
            return SensorProblem(
                'no-server',
                '/tf',
                f'no transforms of {names} in {self.config.frame} arrive any more',
                'look whether the driver that publishes them still runs',
            )
        chains = self._chains()
        tied = {name: chain for name, chain in chains.items() if chain.last == self.config.frame}
        if fixed := self._fixed(tied, ()):
            return _static(fixed[0])
        if self._parents:
            return SensorProblem(
                'no-frames',
                '/tf',
                f'transforms arrive, but none of {names} in {self.config.frame}; published: '
                f'{", ".join(sorted(self._parents)[:8])}',
                'write the names as they are published (ros2 run tf2_tools view_frames)',
            )
        return SensorProblem(
            'no-server',
            '/tf',
            'no transforms arrive',
            'start the driver that publishes them; ROS_DOMAIN_ID and namespace must be the same',
        )


def _static(name: str) -> SensorProblem:
    return SensorProblem(
        'static',
        name,
        'is static (/tf_static), so it is no measurement and not used',
        'publish it on /tf, with the time of each exposure',
    )
