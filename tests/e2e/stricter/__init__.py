"""A release that publishes another version of the refund policy."""
