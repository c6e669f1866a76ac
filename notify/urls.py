"""Addresses of what a person was told, under /notices/."""

from django.urls import path

from notify import views

app_name = "notify"
urlpatterns = [
    path("", views.notices, name="notices"),
    path("read/", views.read_all, name="read_all"),
    path("<uuid:notice_id>/read/", views.read, name="read"),
    path("<uuid:notice_id>/open/", views.go, name="go"),
    path("<uuid:notice_id>/<str:signature>/", views.link, name="link"),
]
