"""The next release of the refunds example: a second version of its operation, beside the first."""
