"""What may surround the simulated arm: a file a medium, the parts of the family `medium`."""
