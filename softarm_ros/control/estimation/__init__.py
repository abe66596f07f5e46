"""What estimators are made of: geometry of a chain of sections, Kalman kernels, commands."""
