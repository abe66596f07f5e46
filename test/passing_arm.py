"""An emulated arm that advances with the clock of a test, and the driver of its devices."""

CHUNK_S = 0.002


class PassingArm:
    """
    Advances an emulated arm with the clock, until it is closed.

    Parameters
    ----------
    clock : ManualClock
    arm : EmulatedArm
        Already started.
    driver : ActuatorDriver
        Driver of the arm's devices.
    step_s : float
        Time step of the arm.

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
        """Send a target at 100 Hz; fail if the driver refuses it."""
        end = self.clock.now_s() + duration_s
        while self.clock.now_s() < end:
            refusal = self.driver.follow(target)
            assert refusal is None, refusal
            self.clock.sleep(0.01)

    def close(self):
        """Close driver and devices, and stop the arm; fail if any task has failed."""
        self.driver.close()
        self._stop.set()
        self._passing.join()
        self.arm.close()
        assert not self.clock.failures
