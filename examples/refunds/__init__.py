"""The worked example: refunds that an automation proposes, a person approves and a provider carries out."""
