"""Tasks of the NI DAQmx library, local or on a host over gRPC, with one type of error."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from softarm_ros.drivers.claim import TakenError, address_of, claim
from softarm_ros.drivers.daq_channel import plain_channel
from softarm_ros.drivers.daq_config import DaqConfig, DaqHost

if TYPE_CHECKING:
    from nidaqmx.task import Task

# Opens a gRPC channel to a host, such as `grpc.insecure_channel` returns.
OpenChannel = Callable[[DaqHost], Any]

OVERRUN = '-200279'
# The host is gone (`CANCELLED`: during a call), or the device is.
GONE = ('grpc UNAVAILABLE', 'grpc CANCELLED', '-88705', '-200220', '-200324', '-201003')


class DaqFaultError(RuntimeError):
    """Error of DAQmx or of its host, with their `code`."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text

    @property
    def gone(self) -> bool:
        """Whether the host or the device is gone, rather than late."""
        return self.code in GONE


@contextlib.contextmanager
def daq_errors(channel: str = '') -> Iterator[None]:
    """
    Turn every error of the library into `DaqFaultError`.

    The text of a DAQmx error names `channel`, if given: the library's first line does not.
    """
    from nidaqmx.errors import DaqError, DaqNotFoundError, DaqNotSupportedError, RpcError

    try:
        yield
    except DaqError as error:
        text = str(error).strip().splitlines()[0]
        named = f'{channel}: {text}' if channel else text
        raise DaqFaultError(str(error.error_code), named) from error
    except RpcError as error:
        name = getattr(error.rpc_code, 'name', str(error.rpc_code))
        raise DaqFaultError(f'grpc {name}', f'DAQ host: {error.description}') from error
    except (DaqNotFoundError, DaqNotSupportedError) as error:
        raise DaqFaultError('', str(error).strip().splitlines()[0]) from error


class DaqSession:
    """
    Creates tasks and clears them at its end; to be used by one thread.

    A task that an earlier run or a broken connection left on the host is cleared first, because it
    would keep the device reserved. Tasks of another running program of this computer are kept.
    """

    def __init__(self, config: DaqConfig, open_channel: OpenChannel) -> None:
        self._config = config
        self._open_channel = open_channel
        self._channel: Any = None
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> DaqSession:
        host = self._config.host
        if host is not None:
            plain = self._open_channel(host)
            self._stack.callback(plain.close)
            self._channel = _LimitedChannel(plain, self._config.call_timeout_s)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def task(self, name: str) -> Task:
        """Create a task, which is cleared with the session; raises `DaqFaultError`."""
        full = f'{self._config.session}_{name}'
        # Other channels lead to a host within this process, which no other program uses.
        if self._config.host is not None and self._open_channel is plain_channel:
            self._claim(self._config.host, full)
        with daq_errors():
            task = self._remote(full) if self._channel is not None else _local(full)
        self._stack.callback(_clear, task)
        return task

    def _claim(self, host: DaqHost, task: str) -> None:
        try:
            mark = claim(f'daq-{address_of(host.host)}:{host.port}-{task}')
        except TakenError as error:
            raise DaqFaultError(
                '',
                f'session = {self._config.session!r} at {host.host}:{host.port} is used by '
                'another program of this computer; end that first',
            ) from error
        if mark is not None:
            self._stack.callback(mark.close)

    def _remote(self, name: str) -> Task:
        from nidaqmx import Task
        from nidaqmx.errors import DaqError, RpcError
        from nidaqmx.grpc_session_options import GrpcSessionOptions, SessionInitializationBehavior

        how = SessionInitializationBehavior

        def create(behaviour: SessionInitializationBehavior) -> Task:
            options = GrpcSessionOptions(self._channel, name, initialization_behavior=behaviour)
            return Task(name, grpc_options=options)

        # Attaching fails if there is no old task; a worse error recurs in the next call.
        with contextlib.suppress(DaqError, RpcError):
            create(how.ATTACH_TO_SERVER_SESSION).close()
        return create(how.INITIALIZE_SERVER_SESSION)


def _local(name: str) -> Task:
    from nidaqmx import Task

    return Task(name)


def _clear(task: Task) -> None:
    from nidaqmx.errors import DaqError, RpcError

    with contextlib.suppress(DaqError, RpcError):  # the host may be gone
        task.close()


class _LimitedChannel:
    """
    Channel whose calls have a deadline: with a host that hangs they would never return.

    An interceptor of gRPC does the same, but takes a sixth of the processor time of a call.
    """

    def __init__(self, channel: Any, seconds: float) -> None:
        self._channel, self._seconds = channel, seconds
        self.unary_stream = channel.unary_stream  # events, which are not used

    def unary_unary(self, *method: Any, **options: Any) -> Callable[..., Any]:
        """Return a method whose calls take `seconds` at most, plus the request's own wait."""
        call, seconds = self._channel.unary_unary(*method, **options), self._seconds

        def limited(request: Any, metadata: Any = None) -> Any:
            waits = max(float(getattr(request, 'timeout', 0.0)), 0.0)
            return call(request, timeout=seconds + waits, metadata=metadata)

        return limited
