"""A connection between driver and device that corrupts the data of the device."""

import contextlib
import socket
import threading


class Proxy:
    """Forwards connections; `treat(data)` yields the pieces of device data the driver gets."""

    def __init__(self, port, treat):
        self.treat = treat
        self._target = port
        self._listening = socket.create_server(('127.0.0.1', 0))
        self._listening.settimeout(0.05)
        self.port = self._listening.getsockname()[1]
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def _accept(self):
        while not self._stop.is_set():
            try:
                driver, _ = self._listening.accept()
            except TimeoutError:
                continue
            driver.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            device = socket.create_connection(('127.0.0.1', self._target))
            for source, target, treat in (
                (driver, device, lambda data: [data]),
                (device, driver, self.treat),
            ):
                thread = threading.Thread(
                    target=self._forward, args=(source, target, treat), daemon=True
                )
                self._threads.append(thread)
                thread.start()

    def _forward(self, source, target, treat):
        source.settimeout(0.05)
        with contextlib.suppress(OSError):
            while not self._stop.is_set():
                try:
                    data = source.recv(4096)
                except TimeoutError:
                    continue
                if not data:
                    break
                for part in treat(data):
                    target.sendall(part)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        target.close()

    def close(self):
        self._stop.set()
        for thread in self._threads:
            thread.join(2.0)
        self._listening.close()
