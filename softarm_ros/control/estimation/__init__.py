"""Building blocks of estimators: geometry of a chain of sections, Kalman kernels, commands."""
