"""Thin rclpy nodes; the only package of softarm_ros that imports ROS."""
