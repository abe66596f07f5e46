"""Streams commands to a driver, in the simulated time of a manual clock."""

import pytest

from softarm_ros.drivers.problems import DriverError


class Streamed:
    """Base of driver rigs, which have a `clock`, a `driver` and a method `send`."""

    def time_to(self, condition, *command):
        """Stream a command until the condition holds; return how long it took [s]."""

        def streamed():
            self.send(*command)
            return condition()

        return self.clock.until(streamed, 3.0)

    def reported(self, source, code):
        """Stream a command until a problem is reported; return how long it took [s]."""

        def seen():
            found = self.driver.state().problems
            return any(p.source == source and p.code == code for p in found)

        return self.time_to(seen)

    def is_helped_by_a_new_start_alone(self, runs, within_s):
        """Check that a failed thread runs again after `close` and `start`, not after `reset`."""
        self.driver.reset()
        why = r'ZeroDivisionError.*; clean up and configure its node'
        with pytest.raises(DriverError, match=why):
            self.driver.enable()
        self.driver.close()
        self.driver.start()
        self.clock.until(runs, within_s, 'a new start')
        assert not self.driver.problems()
