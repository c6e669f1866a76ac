"""Addresses of channels and failures for admins, under /people/notices/."""

from django.urls import path

from notify import views_telling as views

app_name = "telling"
urlpatterns = [
    path("", views.channels, name="channels"),
    path("failures/", views.failures, name="failures"),
    path("failures/<uuid:dispatch_id>/again/", views.again, name="again"),
    path("test-mail/", views.send_test_mail, name="test_mail"),
    path("new/", views.new, name="new"),
    path("new-address/", views.new_address, name="new_address"),
    path("checkpoint/", views.send_checkpoint, name="send_checkpoint"),
    path("<uuid:destination_id>/", views.destination, name="destination"),
    path("<uuid:destination_id>/test/", views.send_test, name="test"),
    path("<uuid:destination_id>/deactivate/", views.deactivate, name="deactivate"),
]
