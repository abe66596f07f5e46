"""Newton-Euler dynamics of an arm in segments of constant strain."""
