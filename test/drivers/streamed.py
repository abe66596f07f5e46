"""A driver that is sent commands all the time, in the time of a manual clock."""


class Streamed:
    """What rigs of drivers share; they have a `clock`, a `driver`, and `send` a command."""

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
