"""The simulated tendon-driven rod: winches, cables with friction, moving rod."""
