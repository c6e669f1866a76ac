"""Starts the product and the engines it stands on. Knows nothing of Django or of the apps."""


class LaunchError(Exception):
    """Something the person at the terminal can put right; its text is printed and says how."""
