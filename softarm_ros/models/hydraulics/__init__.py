"""Water hydraulics: from servo torque to chamber pressure, alone or coupled to the arm."""
