"""The simulated arm: body dynamics, actuator and sensor models; never sleeps."""
