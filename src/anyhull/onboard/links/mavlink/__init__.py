"""The link to an ArduPilot Rover or boat by MAVLink, see docs/mavlink.md; only `config` loads without pymavlink."""
