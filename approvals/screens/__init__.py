"""Reads for the review desk: what its pages show, shaped for the templates. Nothing here changes a row."""
