"""An emulated arm whose time passes with the clock of a test, and the driver before it."""

CHUNK_S = 0.002


class PassingArm:
    """
    Moves an emulated arm on with the clock, until it is closed.

    Parameters
    ----------
    clock : ManualClock
    arm : EmulatedArm
        Started.
    driver : ActuatorDriver
        At its devices.
    step_s : float
        By which the arm moves on.

    """

    def __init__(self, clock, arm, driver, step_s=CHUNK_S):
        self.clock, self.arm, self.driver = clock, arm, driver
        self._step_s = step_s
        self._stop = clock.event()
        self._passing = clock.task(self._pass_time, 'arm')
        self._passing.start()

    def _pass_time(self):
        while not self._stop.wait(self._step_s):
            self.arm.advance(self._step_s)

    def until(self, condition, within_s=20.0):
        """Wait until a condition holds; return how long that took [s]."""
        return self.clock.until(condition, within_s, self.driver.not_ready())

    def follow(self, target, duration_s):
        """Command a target at 100 Hz, which must not be refused."""
        end = self.clock.now_s() + duration_s
        while self.clock.now_s() < end:
            refusal = self.driver.follow(target)
            assert refusal is None, refusal
            self.clock.sleep(0.01)

    def close(self):
        """End driver, devices and time; raises what went wrong in any task."""
        self.driver.close()
        self._stop.set()
        self._passing.join()
        self.arm.close()
        assert not self.clock.failures
