"""Addresses of what is kept, under /people/contents/."""

from django.urls import path

from workflows import views_contents as views

app_name = "contents"
urlpatterns = [
    path("", views.contents, name="contents"),
    path("find/", views.find, name="find"),
    path("erase/", views.erase, name="erase"),
    path("webhooks/", views.erase_webhooks, name="erase_webhooks"),
    path("holds/new/", views.new_hold, name="new_hold"),
    path("holds/<uuid:legal_hold_id>/lift/", views.lift_hold, name="lift_hold"),
    path("runs/<uuid:run_id>/hold/", views.hold_run, name="hold_run"),
    path("runs/<uuid:run_id>/release/", views.release_run, name="release_run"),
]
