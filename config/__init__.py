"""The composition root: nothing imports it. With it comes the Celery application, so that every process rings the
configured broker and not Celery's default one."""

from config.celery import app as celery_app

__all__ = ["celery_app"]
