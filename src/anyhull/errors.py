"""The one exception that a person's mistake raises."""


class InputError(ValueError):
    """Input that cannot be used: one line with the file, the field, the value and what would be accepted."""
