"""Benchmarks of the whole product on its own engines; see README.md."""
