"""Why a goal cannot be taken; the message of each names field, value and limit."""

from __future__ import annotations


class GoalError(ValueError):
    """A goal that cannot be taken."""


class JointNamesError(GoalError):
    """Names that are not those of the arm's configuration."""


class OldStampError(GoalError):
    """A trajectory that would be over by now."""
