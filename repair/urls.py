"""Addresses of the repair desk, under /repair/."""

from django.urls import include, path

from repair import views, views_export, views_following

app_name = "repair"
urlpatterns = [
    path("", include("repair.urls_choices")),
    path("", include("repair.urls_replay")),
    path("", include("repair.urls_incidents")),
    path("", views.packets, name="packets"),
    path("causes/", views.causes, name="causes"),
    path("run/<uuid:run_id>/", views.of_run, name="of_run"),
    path("run/<uuid:run_id>/<slug:kind>/<str:key>/", views_following.follow, name="follow"),
    path("runbook/<str:name>/", views_export.runbook, name="runbook"),
    path("<uuid:packet_id>/", views.packet, name="packet"),
    path("<uuid:packet_id>/packet.json", views_export.export, {"kind": "json"}, name="packet_json"),
    path("<uuid:packet_id>/packet.md", views_export.export, {"kind": "md"}, name="packet_markdown"),
]
