"""The link to a ROS 2 boat, see docs/ros2.md: one node of ours over two transports, rclpy and zenoh."""

from anyhull.onboard.links.ros2.config import ROS2Config

__all__ = ["ROS2Config"]
