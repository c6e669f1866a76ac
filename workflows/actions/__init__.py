"""The only writers of runs, steps and commands, beside the engine and the worker, which have packages of their own."""
