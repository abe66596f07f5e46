"""The results of a model depend on the query only, not on earlier queries."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from test_rig_contracts import cases, model_of, postures, rig_of

QUESTIONS = {
    'forward': lambda arm, a: arm.forward(a).tip,
    'centreline': lambda arm, a: arm.forward(a).centerline(5),
    'configuration': lambda arm, a: arm.configuration_of(a),
    'jacobian': lambda arm, a: arm.jacobian(a),
    'shape': lambda arm, a: arm.shape_of(arm.configuration_of(a)).section_tips,
    'tips': lambda arm, a: arm.tips_of(arm.configuration_of(a)[None]),
    'tip': lambda arm, a: arm.tip_and_jacobian(arm.configuration_of(a))[0],
    'tip jacobian': lambda arm, a: arm.tip_and_jacobian(arm.configuration_of(a))[1],
    'actuation': lambda arm, a: arm.actuation_of(arm.configuration_of(a)),
    'actuation jacobian': lambda arm, a: arm.actuation_jacobian(arm.configuration_of(a)),
    'preferred': lambda arm, a: arm.preferred_configuration(arm.configuration_of(a)),
    'posture': lambda arm, a: arm.posture_of(arm.configuration_of(a)).tip_jacobian,
    'inverse': lambda arm, a: arm.inverse(tip_of(arm, a)).actuation,
    'inverse from a guess': lambda arm, a: arm.inverse(tip_of(arm, a), guess=a).actuation,
}


def tip_of(arm, actuation):
    return arm.forward(actuation).tip[:3, 3]


@pytest.mark.parametrize(('name', 'model'), cases())
def test_results_do_not_depend_on_earlier_queries(name, model):
    arm = model_of(name, model)
    a, b, c = postures(name, model)[:3]
    first = {what: ask(arm, a) for what, ask in QUESTIONS.items()}
    for between in (b, c):
        for ask in QUESTIONS.values():
            ask(arm, between)
        # In reverse order, so that each query follows a different one than before.
        for what in reversed(QUESTIONS):
            assert np.array_equal(QUESTIONS[what](arm, a), first[what]), what


@pytest.mark.parametrize(('name', 'model'), cases())
def test_a_used_model_returns_the_same_results_as_a_new_one(name, model):
    used, new = model_of(name, model), rig_of(name).model(model)
    a, b = postures(name, model)[:2]
    for what, ask in QUESTIONS.items():
        ask(used, b)
        assert np.array_equal(ask(used, a), ask(new, a)), what


@pytest.mark.parametrize(('name', 'model'), cases())
def test_models_in_two_threads_return_the_same_results_as_one_alone(name, model):
    places = postures(name, model)[:2]
    alone = [(tip_of(model_of(name, model), a), model_of(name, model).jacobian(a)) for a in places]
    wrong = []
    begin = threading.Barrier(2)

    def ask(own):
        arm = rig_of(name).model(model)
        begin.wait(60.0)
        for turn in range(20):
            k = (turn + own) % 2
            tip, jacobian = tip_of(arm, places[k]), arm.jacobian(places[k])
            if not (np.array_equal(tip, alone[k][0]) and np.array_equal(jacobian, alone[k][1])):
                wrong.append((own, turn))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # frequent switches, as with many threads
    try:
        with ThreadPoolExecutor(2) as threads:
            list(threads.map(ask, (0, 1)))
    finally:
        sys.setswitchinterval(interval)
    assert wrong == []


@pytest.mark.parametrize(('name', 'model'), cases())
def test_posture_equals_the_model_and_a_neighbour_changes_it_within_tolerance(name, model):
    arm = model_of(name, model)
    a, b = postures(name, model)[:2]
    there, other = arm.configuration_of(a), arm.configuration_of(b)
    alone = arm.posture_of(there)
    tip, jacobian = arm.tip_and_jacobian(there)
    said = (alone.tip, alone.tip_jacobian, alone.actuation, alone.actuation_jacobian)
    asked = (tip, jacobian, arm.actuation_of(there), arm.actuation_jacobian(there))
    for one, two in zip((*said, alone.preferred), (*asked, arm.preferred_configuration(there))):
        np.testing.assert_array_equal(one, two)
    for start in (other, there + 0.02 * (other - there)):
        neighbour = arm.posture_of(start)
        # Reading its tip solves the neighbour, so that it can serve as a start.
        np.testing.assert_array_equal(neighbour.tip, arm.tip_and_jacobian(start)[0])
        beside = arm.posture_of(there, neighbour)
        assert np.linalg.norm(beside.tip - tip) < 1e-8 * arm.rest_length_m
        np.testing.assert_allclose(
            beside.tip_jacobian * arm.configuration_scale,
            jacobian * arm.configuration_scale,
            atol=1e-6 * arm.rest_length_m,
        )
        np.testing.assert_allclose(beside.actuation, asked[2], rtol=1e-6, atol=1e-9)
