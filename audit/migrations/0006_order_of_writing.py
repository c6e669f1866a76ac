"""The order in which events were written, from a sequence: the clock may step back between two that depend on each other.

Adding the column takes no time, however long the history is; events of before keep the order of their times.
"""

import common.walls
import pgtrigger.compiler
import pgtrigger.migrations
from django.conf import settings
from django.db import migrations, models

_MAKE = "CREATE SEQUENCE audit_event_written AS bigint OWNED BY audit_event.written"
_DROP = "DROP SEQUENCE audit_event_written"


def grant(apps, schema_editor):
    """Whoever adds events takes its next number, and cannot set it. Skipped where there is no such role."""
    with schema_editor.connection.cursor() as cursor:
        for role in (settings.PLACET_APP_ROLE, settings.PLACET_SYSTEM_ROLE):
            cursor.execute("SELECT 1 FROM pg_roles WHERE rolname = %s AND rolname <> current_user", [role])
            if cursor.fetchone() is not None:
                quoted = schema_editor.quote_name(role)
                cursor.execute(f"REVOKE ALL ON SEQUENCE audit_event_written FROM PUBLIC, {quoted}")
                cursor.execute(f"GRANT USAGE ON SEQUENCE audit_event_written TO {quoted}")


class Migration(migrations.Migration):

    dependencies = [
        ('audit', '0005_explorer_indexes'),
    ]

    operations = [
        pgtrigger.migrations.RemoveTrigger(
            model_name='event',
            name='audit_event_stamp',
        ),
        migrations.AddField(
            model_name='event',
            name='written',
            field=models.BigIntegerField(null=True),
        ),
        migrations.RunSQL(_MAKE, _DROP),
        migrations.RunPython(grant, migrations.RunPython.noop, elidable=False),
        pgtrigger.migrations.AddTrigger(
            model_name='event',
            trigger=pgtrigger.compiler.Trigger(name='audit_event_stamp', sql=common.walls.WallSql(func="\n            NEW.at := clock_timestamp();\n            NEW.xid := pg_current_xact_id()::text::bigint;\n            NEW.written := nextval('audit_event_written');\n            RETURN NEW;\n        ", hash='82503ee0fb0caf1ee30a9a1399ea169ee019295e', operation='INSERT', pgid='pgtrigger_audit_event_stamp_6d0c1', table='audit_event', when='BEFORE')),
        ),
    ]
