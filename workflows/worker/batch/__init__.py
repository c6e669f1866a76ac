"""Many commands at a time, where everything is as it should be.

What needs anything else (a check that fails, an answer that is not a plain *yes*, a row that somebody has locked) is
left as it was, and goes its way alone through `workflows.worker.send` and `workflows.worker.store`: the rules for it
stand there and nowhere else.
"""
