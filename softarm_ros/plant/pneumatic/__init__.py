"""The simulated pneumatic arm: regulators, chambers, body, gripper, base sensor."""
