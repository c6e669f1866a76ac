"""What the desk shows of runs: shaped for templates, read by one tenant's rows only, changing nothing."""
