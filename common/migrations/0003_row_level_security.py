"""Row-level security of the tenants themselves; before that, the rights of the system role in what is there already."""

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import migrations

import common.rowsecurity

_RIGHTS = (("SELECT, INSERT, UPDATE, DELETE", "TABLES"), ("USAGE", "SEQUENCES"))


def let_system_in(apps, schema_editor):
    """In a database from before there was this role. What is made later it may use by default privileges."""
    role = settings.PLACET_SYSTEM_ROLE
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role])
        if cursor.fetchone() is None:
            raise ImproperlyConfigured(
                f"The database has no role {role}, which DATABASE_SYSTEM_URL names. `python -m launch roles` makes it."
            )
        for rights, kind in _RIGHTS:
            cursor.execute(f"GRANT {rights} ON ALL {kind} IN SCHEMA public TO {schema_editor.quote_name(role)}")


class Migration(migrations.Migration):

    dependencies = [
        ('common', '0002_heartbeat'),
    ]

    operations = [
        migrations.RunPython(let_system_in, migrations.RunPython.noop, elidable=False),
        migrations.AddConstraint(
            model_name='tenant',
            constraint=common.rowsecurity.RowSecurity(column='id', name='common_tenant_row_security'),
        ),
    ]
