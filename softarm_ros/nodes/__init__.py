"""Thin rclpy nodes; the only room that imports ROS."""
