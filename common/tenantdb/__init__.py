"""The database backend of the application role: PostgreSQL, where every transaction names its tenant."""
