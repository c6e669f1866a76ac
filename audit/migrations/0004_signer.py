"""The signer's tables, and its role: it reads the places of the chain, adds what it signed, and may do nothing else."""

import common.rowsecurity
import common.walls
import django.db.models.functions.datetime
import pgtrigger.compiler
import pgtrigger.migrations
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import migrations, models

_TABLES = ("audit_checkpoint", "audit_signing_key", "audit_signer_report")


def expect_signer(apps, schema_editor):
    role = settings.PLACET_SIGNER_ROLE
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role])
        if cursor.fetchone() is None:
            raise ImproperlyConfigured(
                f"The database has no role {role}, which DATABASE_SIGNER_URL names. `python -m launch roles` makes it."
            )


def narrow(apps, schema_editor):
    """The others may look. Skipped for a role that owns the tables, where rights mean nothing."""
    quote = schema_editor.quote_name
    with schema_editor.connection.cursor() as cursor:
        for role in (settings.PLACET_APP_ROLE, settings.PLACET_SYSTEM_ROLE):
            cursor.execute("SELECT 1 FROM pg_roles WHERE rolname = %s AND rolname <> current_user", [role])
            if cursor.fetchone() is not None:
                cursor.execute(f"REVOKE ALL ON {', '.join(_TABLES)} FROM {quote(role)}")
                cursor.execute(f"GRANT SELECT ON {', '.join(_TABLES)} TO {quote(role)}")
        signer = quote(settings.PLACET_SIGNER_ROLE)
        cursor.execute(f"REVOKE ALL ON {', '.join(_TABLES)} FROM PUBLIC, {signer}")
        cursor.execute(f"GRANT SELECT, INSERT ON {', '.join(_TABLES)} TO {signer}")
        cursor.execute(f"GRANT SELECT (tenant_id, seq, previous, hash) ON audit_seal TO {signer}")


class Migration(migrations.Migration):

    dependencies = [
        ('audit', '0003_row_level_security'),
    ]

    operations = [
        migrations.RunPython(expect_signer, migrations.RunPython.noop, elidable=False),
        migrations.CreateModel(
            name='Checkpoint',
            fields=[
                ('id', models.UUIDField(primary_key=True, serialize=False)),
                ('tenant_id', models.UUIDField()),
                ('size', models.BigIntegerField()),
                ('root', models.CharField(max_length=64)),
                ('note', models.TextField()),
                ('key_hash', models.CharField(max_length=8)),
                ('signed_at', models.DateTimeField()),
                ('recorded_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
        ),
        migrations.CreateModel(
            name='SignerReport',
            fields=[
                ('id', models.UUIDField(primary_key=True, serialize=False)),
                ('tenant_id', models.UUIDField()),
                ('kind', models.CharField(choices=[('refused', 'Refused'), ('accepted', 'Accepted')], max_length=20)),
                ('cause', models.CharField(max_length=40)),
                ('detail', models.CharField(max_length=600)),
                ('at', models.DateTimeField()),
                ('recorded_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'db_table': 'audit_signer_report',
            },
        ),
        migrations.CreateModel(
            name='SigningKey',
            fields=[
                ('vkey', models.CharField(max_length=200, primary_key=True, serialize=False)),
                ('since', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'db_table': 'audit_signing_key',
            },
        ),
        migrations.RemoveConstraint(
            model_name='seal',
            name='audit_seal_row_security',
        ),
        migrations.AddConstraint(
            model_name='seal',
            constraint=common.rowsecurity.RowSecurity(name='audit_seal_row_security', signer=True),
        ),
        migrations.AddIndex(
            model_name='checkpoint',
            index=models.Index(fields=['tenant_id', '-recorded_at'], name='audit_checkpoint_newest'),
        ),
        migrations.AddConstraint(
            model_name='checkpoint',
            constraint=common.rowsecurity.RowSecurity(name='audit_checkpoint_row_security', signer=True),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='checkpoint',
            trigger=pgtrigger.compiler.Trigger(name='audit_checkpoint_append_only', sql=common.walls.WallSql(func="RAISE EXCEPTION 'append-only: rows of % are neither changed nor deleted', TG_TABLE_NAME USING ERRCODE = 'check_violation', CONSTRAINT = 'audit_checkpoint_append_only', TABLE = TG_TABLE_NAME;", hash='e79d76a4d544d158d26074effdb626d84b81095f', operation='UPDATE OR DELETE', pgid='pgtrigger_audit_checkpoint_append_only_c0ad0', table='audit_checkpoint', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='checkpoint',
            trigger=pgtrigger.compiler.Trigger(name='audit_checkpoint_no_truncate', sql=common.walls.WallSql(func="RAISE EXCEPTION 'append-only: % is not emptied', TG_TABLE_NAME USING ERRCODE = 'check_violation', CONSTRAINT = 'audit_checkpoint_no_truncate', TABLE = TG_TABLE_NAME;", hash='769ee52d9bc1ce128968a1bfbedb36ae4b7fd437', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_audit_checkpoint_no_truncate_9af08', table='audit_checkpoint', when='BEFORE')),
        ),
        migrations.AddIndex(
            model_name='signerreport',
            index=models.Index(fields=['tenant_id', '-recorded_at'], name='audit_signer_report_newest'),
        ),
        migrations.AddConstraint(
            model_name='signerreport',
            constraint=common.rowsecurity.RowSecurity(name='audit_signer_report_row_security', signer=True),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='signerreport',
            trigger=pgtrigger.compiler.Trigger(name='audit_signer_report_append_only', sql=common.walls.WallSql(func="RAISE EXCEPTION 'append-only: rows of % are neither changed nor deleted', TG_TABLE_NAME USING ERRCODE = 'check_violation', CONSTRAINT = 'audit_signer_report_append_only', TABLE = TG_TABLE_NAME;", hash='53c1aecea09033b41643d709f7458a43abac166e', operation='UPDATE OR DELETE', pgid='pgtrigger_audit_signer_report_append_only_ded6d', table='audit_signer_report', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='signerreport',
            trigger=pgtrigger.compiler.Trigger(name='audit_signer_report_no_truncate', sql=common.walls.WallSql(func="RAISE EXCEPTION 'append-only: % is not emptied', TG_TABLE_NAME USING ERRCODE = 'check_violation', CONSTRAINT = 'audit_signer_report_no_truncate', TABLE = TG_TABLE_NAME;", hash='fa3d6d2ab42cd8e7ece2b68ebfe269a62f393e61', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_audit_signer_report_no_truncate_89bae', table='audit_signer_report', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='signingkey',
            trigger=pgtrigger.compiler.Trigger(name='audit_signing_key_append_only', sql=common.walls.WallSql(func="RAISE EXCEPTION 'append-only: rows of % are neither changed nor deleted', TG_TABLE_NAME USING ERRCODE = 'check_violation', CONSTRAINT = 'audit_signing_key_append_only', TABLE = TG_TABLE_NAME;", hash='dd07773dbcfed8f65bac73b7c7fba513665d7603', operation='UPDATE OR DELETE', pgid='pgtrigger_audit_signing_key_append_only_a5883', table='audit_signing_key', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='signingkey',
            trigger=pgtrigger.compiler.Trigger(name='audit_signing_key_no_truncate', sql=common.walls.WallSql(func="RAISE EXCEPTION 'append-only: % is not emptied', TG_TABLE_NAME USING ERRCODE = 'check_violation', CONSTRAINT = 'audit_signing_key_no_truncate', TABLE = TG_TABLE_NAME;", hash='577144d66640451097cac6828de5f666cf9326e0', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_audit_signing_key_no_truncate_d489b', table='audit_signing_key', when='BEFORE')),
        ),
        migrations.RunPython(narrow, migrations.RunPython.noop, elidable=False),
    ]
