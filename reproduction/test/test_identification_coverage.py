"""Machines drawn from the priors are identified, also where the search meets what is no arm."""

import numpy as np
import pytest

from softarm_reproduction.identification_coverage import identified_machine
from softarm_ros.cli.identification.common import usual_groups
from softarm_ros.cli.identification.fit import chosen
from softarm_ros.models.identifiable import parameters_of
from softarm_ros.rigs.loader import load_rig


# On the way to machine 41 the trunk's pairs leave a bend free; to 8 fishbone_arm buckles.
@pytest.mark.parametrize(('name', 'seed'), [('trunk', 41), ('fishbone_arm', 8)])
def test_a_search_passes_places_where_there_is_no_arm(name, seed):
    rig = load_rig(name).model_copy(update={'recording': None})
    parameters = chosen(parameters_of(rig.mechanics_name, rig.arm), usual_groups(rig))
    machine = identified_machine(rig, parameters, seed, 40)
    assert np.all(machine.ends[:, 0] < machine.ends[:, 1])
    assert np.mean(machine.inside) > 0.75
