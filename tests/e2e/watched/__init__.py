"""Processes that write down what limits their database connections really have."""
