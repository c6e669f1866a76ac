"""The signer: a process of its own that signs how far each tenant's history goes, and never signs another past.

It has its own account in the database, which may read seals and add checkpoints, and its own folder, in which the key
lies. It knows nothing of Django or of the apps beyond how a history is hashed.
"""


class SignerError(Exception):
    """Something the person at the terminal can put right; its text is printed and says how."""
