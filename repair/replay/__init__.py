"""Replays: a run once more, under its old versions or today's, without repeating what it has done."""
