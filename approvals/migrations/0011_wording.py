"""Words of questions and answers get a name that nothing else has, so that whoever shows them is found."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("approvals", "0010_queue_counted")]

    operations = [
        migrations.RenameField("question", "text", "wording"),
        migrations.RenameField("answer", "text", "wording"),
    ]
