"""The pulse: what an open page of the desk is told without asking the database (docs/adr, *The pulse*).

`memory` holds what has happened lately and who may be told, `reading` fills it from the database, `listener` does so in
one thread of the process, and `middleware` answers from it before anything else of a request is done.
"""
