"""What the application role may do with the history: add and read, nothing else."""

from django.conf import settings
from django.db import migrations

_TABLES = {
    "audit_event": "SELECT, INSERT",
    "audit_seal": "SELECT, INSERT",
    "audit_head": "SELECT, INSERT, UPDATE",
    "audit_watermark": "SELECT, INSERT, UPDATE",
}


def narrow(apps, schema_editor):
    """Skipped where there is no such role, or where it owns the tables and rights mean nothing."""
    role = settings.PLACET_APP_ROLE
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_roles WHERE rolname = %s AND rolname <> current_user", [role])
        if cursor.fetchone() is None:
            return
        quoted = schema_editor.quote_name(role)
        for table, rights in _TABLES.items():
            cursor.execute(f"REVOKE ALL ON {table} FROM PUBLIC, {quoted}")
            cursor.execute(f"GRANT {rights} ON {table} TO {quoted}")


class Migration(migrations.Migration):

    dependencies = [
        ('audit', '0001_initial'),
    ]

    operations = [
        migrations.RunPython(narrow, migrations.RunPython.noop, elidable=False),
    ]
