"""The viewer in a browser: an arm in three dimensions, plots, health, and what stops it."""
