"""Row-level security of the history, and what each role may do with it: requests add events, only the sealer seals."""

from django.conf import settings
from django.db import migrations

import common.rowsecurity

_SYSTEM = {
    "audit_event": "SELECT, INSERT",
    "audit_seal": "SELECT, INSERT",
    "audit_head": "SELECT, INSERT, UPDATE",
    "audit_watermark": "SELECT, INSERT, UPDATE",
}
_APP = {"audit_event": "SELECT, INSERT", "audit_seal": "SELECT", "audit_head": "SELECT", "audit_watermark": "SELECT"}


def narrow(apps, schema_editor):
    """Skipped for a role that owns the tables, where rights mean nothing."""
    with schema_editor.connection.cursor() as cursor:
        for role, tables in ((settings.PLACET_SYSTEM_ROLE, _SYSTEM), (settings.PLACET_APP_ROLE, _APP)):
            cursor.execute("SELECT 1 FROM pg_roles WHERE rolname = %s AND rolname <> current_user", [role])
            if cursor.fetchone() is None:
                continue
            quoted = schema_editor.quote_name(role)
            for table, rights in tables.items():
                cursor.execute(f"REVOKE ALL ON {table} FROM {quoted}")
                cursor.execute(f"GRANT {rights} ON {table} TO {quoted}")


class Migration(migrations.Migration):

    dependencies = [
        ('common', '0003_row_level_security'),
        ('audit', '0002_privileges'),
    ]

    operations = [
        migrations.RunPython(narrow, migrations.RunPython.noop, elidable=False),
        migrations.AddConstraint(
            model_name='event',
            constraint=common.rowsecurity.RowSecurity(name='audit_event_row_security'),
        ),
        migrations.AddConstraint(
            model_name='head',
            constraint=common.rowsecurity.RowSecurity(name='audit_head_row_security'),
        ),
        migrations.AddConstraint(
            model_name='seal',
            constraint=common.rowsecurity.RowSecurity(name='audit_seal_row_security'),
        ),
    ]
