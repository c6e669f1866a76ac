from django.apps.registry import Apps
from django.conf import settings
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from access.provider import subject_id

_OURS = 64
"""Characters of what is kept from now on; a provider's own names are looked at by this length alone."""


def name_the_issuer(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Accounts at the provider were known by the subject's name alone, which another issuer gives to somebody else.

    They are of the issuer that is configured now. Without one they open nothing from here on.
    """
    for provider in settings.SOCIALACCOUNT_PROVIDERS.values():
        for app in provider["APPS"]:
            rows = apps.get_model("socialaccount", "SocialAccount").objects.using(
                schema_editor.connection.alias
            )
            for row in rows.filter(provider=app["provider_id"]):
                if len(row.uid) != _OURS:
                    row.uid, row.extra_data = subject_id(app["settings"]["server_url"], row.uid), {}
                    row.save(update_fields=["uid", "extra_data"])


class Migration(migrations.Migration):
    dependencies = [
        ("access", "0006_scope_for_answers"),
        ("socialaccount", "0006_alter_socialaccount_extra_data"),
    ]
    operations = [migrations.RunPython(name_the_issuer, migrations.RunPython.noop)]
