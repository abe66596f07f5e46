"""Water hydraulics: servo torque to chamber pressure, alone and with the arm."""
