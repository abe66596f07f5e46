"""Live goals: what may be asked of a running arm, and the smooth motion that answers it."""
