"""Configuration of the serial line of a board."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from softarm_ros.geometry.configs import ConfigBlock, Timeout

_URLS = ('socket', 'rfc2217', 'spy', 'hwgrep', 'alt', 'cp2110', 'loop')  # schemes of pyserial
_OF_HOSTS = ('socket', 'rfc2217')


def checked_port(text: str) -> str:
    """Return a serial port or a URL of pyserial; raise ValueError if a URL is invalid."""
    scheme, between, _ = text.partition('://')
    if not between:
        return text
    if scheme not in _URLS:
        raise ValueError(f'expected a port, or a URL of pyserial: {", ".join(_URLS)}')
    if scheme in _OF_HOSTS:
        try:
            parts = urlsplit(text)
            complete = bool(parts.hostname and parts.port)
        except ValueError:  # the port is not a number, or beyond 65535
            complete = False
        if not complete:
            raise ValueError(f'expected {scheme}://host:port')
    return text


Baud = Annotated[int, Field(ge=300, le=12_000_000)]  # up to the fastest USB adapters


class SerialConfig(ConfigBlock):
    """A stepper or valve board behind a serial port: USB, or a Bluetooth serial port."""

    port: Annotated[str, AfterValidator(checked_port)] = Field(
        min_length=1,
        description='/dev/serial/by-id/..., /dev/rfcomm0, or a URL of pyserial (socket://host:port)',
    )
    baud: Baud = Field(description='steppers 250000, valves 115200')
    rate_hz: float = Field(
        default=100.0, ge=20.0, le=200.0, description='rate of commands to the board'
    )
    link_timeout_s: float = Field(
        default=0.15,
        ge=0.05,
        le=0.25,
        description='time without a state after which the board counts as lost',
    )
    answer_timeout_s: Timeout = Field(
        default=0.25, description='time for one answer; a request is sent three times'
    )
    reconnect_s: Timeout = Field(default=0.25, description='pause between attempts to connect')
