"""The ROS 2 package of anyhull's pilot."""

from glob import glob

from setuptools import setup

NAME = "anyhull_ros"

setup(
    name=NAME,
    version="0.2.0",
    packages=[NAME],
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{NAME}"]),
        (f"share/{NAME}", ["package.xml"]),
        (f"share/{NAME}/launch", glob("launch/*.launch.py")),
        (f"share/{NAME}/config", glob("config/*.toml")),
    ],
    install_requires=["setuptools"],
    zip_safe=True,
    maintainer="The anyhull developers",
    maintainer_email="anyhull@users.noreply.github.com",
    description="Steers a surface vessel along a trajectory: anyhull's pilot as a ROS 2 node.",
    license="MIT",
    entry_points={"console_scripts": [f"pilot = {NAME}.pilot:main"]},
)
