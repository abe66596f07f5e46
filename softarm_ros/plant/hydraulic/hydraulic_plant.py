"""The complete simulated water-hydraulic arm."""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import ArrayLike

from softarm_ros.drivers.pressure_loop import PressureLoopConfig
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.hydraulics.axes import WaterHydraulics
from softarm_ros.models.hydraulics.config import HydraulicAxisConfig
from softarm_ros.models.hydraulics.section_config import ChamberConfig
from softarm_ros.plant.hydraulic.body import HydraulicBody
from softarm_ros.plant.hydraulic.config import HydraulicPlantConfig
from softarm_ros.plant.hydraulic.drives import HydraulicDrives
from softarm_ros.plant.plant import Plant
from softarm_ros.plant.world import World


class HydraulicPlant(Plant[HydraulicBody, HydraulicDrives]):
    """
    A body with water chambers, servo cylinders and pressure sensors.

    It starts at rest with the torques of `preload_Pa`.

    Parameters
    ----------
    config
        Properties of the plant; the controller knows none of them.
    chambers
        One per actuator, in the order of the commands.
    torque_per_pressure : (m,)
        Nominal ratio of the drives [N m/Pa].
    loop
        Pressure loop of the drives.
    preload_Pa : (m,)
        Initial pressures.
    world
        Gravity in the base frame, fluid, tip load.
    seed
        Seed of all random numbers.

    Raises
    ------
    PlantError
        If there is no initial equilibrium.

    """

    config: HydraulicPlantConfig

    def __init__(
        self,
        config: HydraulicPlantConfig,
        chambers: Sequence[ChamberConfig],
        torque_per_pressure: ArrayLike,
        loop: PressureLoopConfig,
        preload_Pa: ArrayLike,
        world: World,
        seed: int,
    ) -> None:
        hydraulics = WaterHydraulics(plant_axes(config, chambers))
        body = HydraulicBody(config, chambers, world, hydraulics)
        drives = HydraulicDrives(config, torque_per_pressure, loop, preload_Pa, body, seed)
        super().__init__(config, body, drives)

    def chamber_pressures(self) -> Array:
        """Return the measured gauge pressures (m,) [Pa]."""
        return self.drives.chamber_pressures()


def plant_axes(
    config: HydraulicPlantConfig, chambers: Sequence[ChamberConfig]
) -> list[HydraulicAxisConfig]:
    """Return one axis per chamber; the chamber stretches with the arm, its wall is rigid."""
    axes = []
    for chamber, factor in zip(chambers, config.efficiency_factors):
        section = config.sections[chamber.section]
        axes.append(
            config.axis.model_copy(
                update={
                    'name': chamber.name,
                    'transmission_efficiency': factor * config.axis.transmission_efficiency,
                    'chamber_volume_m3': section.chamber_area_m2 * section.length_m,
                }
            )
        )
    return axes
