"""The one error that is shown to people."""


class PcgError(ValueError):
    """One clear sentence that says what to do."""
