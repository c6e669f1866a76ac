from django.apps import AppConfig


class RepairConfig(AppConfig):
    name = "repair"
    default_auto_field = "django.db.models.BigAutoField"
