"""anyhull's pilot as a ROS 2 node."""
