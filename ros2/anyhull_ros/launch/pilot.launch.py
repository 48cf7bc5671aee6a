"""Launches the pilot: `ros2 launch anyhull_ros pilot.launch.py boat:=boat.toml mission:=survey.toml`."""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

ARGUMENTS = {
    "boat": (None, "The boat's TOML file, with a table [link]."),
    "mission": ("", "A mission file: .toml, .csv, .gpx, .geojson or .plan."),
    "controller": ("field", "The controller, as of anyhull pilot --controller."),
    "out": ("pilot.npz", "The log."),
    "namespace": ("", "Of the node, and of topics without a leading slash."),
}
"""Default and description of each argument."""


def generate_launch_description():
    """The node, with the arguments as its parameters."""
    declared = [
        DeclareLaunchArgument(name, description=about, **({} if default is None else {"default_value": default}))
        for name, (default, about) in ARGUMENTS.items()
    ]
    from_link = DeclareLaunchArgument(
        "from_link", default_value="false", description="Wait for a nav_msgs/Path, and follow its points."
    )
    texts = ("boat", "mission", "controller", "out")
    parameters = {name: ParameterValue(LaunchConfiguration(name), value_type=str) for name in texts}
    parameters["from_link"] = ParameterValue(LaunchConfiguration("from_link"), value_type=bool)
    node = Node(
        package="anyhull_ros",
        executable="pilot",
        name="anyhull_pilot",
        namespace=LaunchConfiguration("namespace"),
        output="screen",
        emulate_tty=True,
        parameters=[parameters],
    )
    return LaunchDescription([*declared, from_link, node])
