"""The viewer in a browser: an arm in three dimensions, plots, node health and a stop button."""
