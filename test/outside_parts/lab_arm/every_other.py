"""An estimator that uses every n-th measured pose, for a loop slower than its cameras."""

from pydantic import Field

from softarm_ros.control.estimators.direct import Direct
from softarm_ros.geometry.configs import ConfigBlock
from softarm_ros.geometry.parts import Part


class EveryOtherConfig(ConfigBlock):
    every: int = Field(default=2, ge=1, description='pose that is taken')


class EveryOther(Direct):
    def __init__(self, model, every):
        self._every, self._count = every, 0
        super().__init__(model)

    def observe(self, sighting):
        self._count += 1
        return None if self._count % self._every else super().observe(sighting)


def build(config, model, surroundings):
    return EveryOther(model, config.every)


PART = Part(
    'estimator',
    'every_other',
    EveryOtherConfig,
    {'estimator': f'{__name__}:build'},
    'every n-th measured pose',
)
