"""Addresses of the history, under /history/."""

from django.urls import path

from audit import views

app_name = "audit"
urlpatterns = [
    path("", views.history, name="history"),
    path("check/", views.check, name="check"),
    path("<uuid:event_id>/", views.event, name="event"),
]
