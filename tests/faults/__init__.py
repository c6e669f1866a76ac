"""The fault harness: real processes, injected faults, and an oracle outside our database. See docs/faults.md."""
