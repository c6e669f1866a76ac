"""The example's payment provider: a real HTTP process with a durable store of its own.

It knows nothing of the product that calls it: standard library only, no Django, its own file, its own
journal. It behaves as good and bad providers do, by switches, and its journal is the independent witness
of what happened.
"""
