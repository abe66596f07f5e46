"""Streams commands to a driver, in the simulated time of a manual clock."""


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
