"""Tables that no record gives: settings, and measurements whose runs were not stored."""

from figures import Key

SETTINGS = {
    Key(page, heading, column)
    for page, heading, column in (
        ("docs/architecture.md", "Rooms", "room"),
        ("docs/boat.md", "2. The boat's file", "the boat has"),
        ("docs/boat.md", "Before the water: `anyhull check`", "it says"),
        ("docs/differences.md", "Thrusters in training", "range"),
        ("docs/export.md", "A policy for other runtimes", "input"),
        ("docs/export.md", "A policy for other runtimes", "output"),
        ("docs/identify.md", "A table from elsewhere", "column"),
        ("docs/lab.md", "What can be changed", "control"),
        ("docs/link.md", "Datagrams with a key", "datagram"),
        ("docs/link.md", "Fields of every message", "key"),
        ("docs/link.md", "Boat to pilot", "`type`"),
        ("docs/link.md", "Pilot to boat", "`type`"),
        ("docs/logs.md", "What is recorded", "array"),
        ("docs/logs.md", "Foxglove", "topic"),
        ("docs/logs.md", "ROS 2", "topic"),
        ("docs/logs.md", "ArduPilot's log", "of the run"),
        ("docs/mavlink.md", "Connection", "`address`"),
        ("docs/mavlink.md", "The boat's file", "key"),
        ("docs/mavlink.md", "Parameters of the autopilot", "parameter"),
        ("docs/mavlink.md", "When something fails", "what"),
        ("docs/missions.md", "The path", "option"),
        ("docs/missions.md", "Files", "file"),
        ("docs/ros2.md", "The table `[link]`", "field"),
        ("docs/ros2.md", "The table `[link]`", "topic (field)"),
        ("docs/safety.md", "Behaviours", "reaction"),
        ("docs/safety.md", "Behaviours", "behaviour"),
        ("docs/safety.md", "What the operator must do", "what dies"),
        ("docs/study.md", "Jobs", "job"),
        ("docs/training.md", "Recipes and presets", "`--preset`"),
        ("docs/training.md", "The folder of a run", "file"),
        ("docs/training.md", "Progress and TensorBoard", "phase"),
        ("docs/twin.md", "The sea-trial twin", "training model"),
        ("docs/twin.md", "Faults", "part"),
        ("docs/vessels.md", "The least that a file needs", "optional"),
        ("docs/vessels.md", "Plausible hulls", "quantity"),
        ("docs/vessels.md", "Thrusters", "optional"),
    )
}
"""Formats, defaults, ranges and thresholds: nothing is measured."""

TRIED = "an experiment of version 0.1 or 0.2 on changed code; its runs were not stored"

UNRECORDED = {
    Key("docs/speed.md", "Speed", "two cores of an AMD EPYC, the better of two runs each"): (
        "two versions in turns; the runs were not stored"
    ),
    Key("docs/speed.md", "Training: analytic policy gradients", "phase (2)"): (
        "ten seeds with the updates of version 0.1; the page says that it is not stored"
    ),
    Key("docs/speed.md", "From start to end", "command"): "times of whole commands, with version 0.1",
    Key("docs/training.md", "Which command", "purpose"): "one run of `--preset fast` with version 0.1",
    Key("docs/notes/speed.md", "PPO on a GPU", "variant"): TRIED,
    Key("docs/notes/speed.md", "Analytic policy gradients on a GPU", "variant"): TRIED,
    Key("docs/notes/speed.md", "Compilation beside training", "version"): TRIED,
    Key("docs/notes/speed.md", "Compilation beside training", "job"): (
        "two states of version 0.1; their records have been replaced by later runs of the study"
    ),
    Key("docs/notes/training.md", "The paper's recipe (PPO)", "teacher"): TRIED,
    Key("docs/notes/training.md", "Constant heading bias", "variant"): TRIED,
    Key("docs/notes/training.md", "Constant heading bias", "teacher"): TRIED,
    Key("docs/notes/training.md", "Scaling of the adapter's history", "teacher, cm"): TRIED,
    Key("docs/notes/training.md", "Scaling of the adapter's history", "history"): TRIED,
    Key("docs/notes/training.md", "Variants of Phase 2", "variant"): TRIED,
    Key("docs/notes/training.md", "Analytic policy gradients (APG)", "policy"): TRIED,
    Key("docs/notes/training.md", "Field sea", "policy"): TRIED,
    Key("docs/notes/training.md", "Training further on two cores", "variant"): TRIED,
    Key("docs/notes/training.md", "Sensor noise", "scales of gain, velocity, command"): TRIED,
    Key("docs/notes/training.md", "Sensor noise", "boats measured exactly"): TRIED,
    Key("docs/notes/training.md", "Network and history", "variant"): TRIED,
    Key("docs/notes/training.md", "Weights of the cost", "heading"): TRIED,
    Key("docs/notes/training.md", "What limits the accuracy", "variant"): TRIED,
}
"""Measurements without a stored record, and why."""
