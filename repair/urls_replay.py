"""Addresses of replays and comparisons, under /repair/run/<run>/."""

from django.urls import path

from repair import views_replay

urlpatterns = [
    path("run/<uuid:run_id>/replay/", views_replay.replay, name="replay"),
    path("run/<uuid:run_id>/replays/", views_replay.replays, name="replays"),
    path("run/<uuid:run_id>/compare/", views_replay.compare, name="compare"),
]
