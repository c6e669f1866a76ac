"""Addresses of the history explorer that know runs and decisions, under /history/."""

from django.urls import path

from workflows import views_history

app_name = "explorer"
urlpatterns = [
    path("let-through/", views_history.passed_list, name="let_through"),
    path("let-through/list/", views_history.take, name="take"),
    path("runs/<uuid:run_id>/", views_history.run, name="run"),
]
