"""Servos on a Dynamixel bus: packets, control table, bus, driver."""
