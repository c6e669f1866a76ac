"""The composition root: settings, URLs, the Celery app, API assembly. Nothing imports it."""

from config.celery import app as celery_app

__all__ = ("celery_app",)
