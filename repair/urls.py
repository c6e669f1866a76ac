"""Addresses of the repair desk, under /repair/."""

from django.urls import path

from repair import views

app_name = "repair"
urlpatterns = [
    path("", views.packets, name="packets"),
    path("run/<uuid:run_id>/", views.of_run, name="of_run"),
    path("<uuid:packet_id>/", views.packet, name="packet"),
]
