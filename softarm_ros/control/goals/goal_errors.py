"""Errors of goals that cannot be accepted; each message names field, value and limit."""

from __future__ import annotations


class GoalError(ValueError):
    """The goal cannot be accepted."""


class JointNamesError(GoalError):
    """The names are not those of the arm's configuration."""


class OldStampError(GoalError):
    """The trajectory would be over by now."""
