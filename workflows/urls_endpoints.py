"""Addresses of the endpoints for webhooks and of callbacks, under /people/endpoints/."""

from django.urls import path

from workflows import views_callbacks, views_endpoints

app_name = "endpoints"
urlpatterns = [
    path("", views_endpoints.endpoints, name="endpoints"),
    path("new/", views_endpoints.new, name="new"),
    path("callbacks/", views_callbacks.callbacks, name="callbacks"),
    path("callbacks/new/", views_callbacks.new, name="new_callback"),
    path("callbacks/<uuid:callback_endpoint_id>/", views_callbacks.callback, name="callback"),
    path("callbacks/<uuid:callback_endpoint_id>/rotate/", views_callbacks.rotate, name="rotate_callback"),
    path(
        "callbacks/<uuid:callback_endpoint_id>/again/",
        views_callbacks.send_again,
        name="send_again",
    ),
    path(
        "callbacks/<uuid:callback_endpoint_id>/deactivate/",
        views_callbacks.deactivate,
        name="deactivate_callback",
    ),
    path("<uuid:endpoint_id>/", views_endpoints.endpoint, name="endpoint"),
    path("<uuid:endpoint_id>/rotate/", views_endpoints.rotate, name="rotate"),
    path("<uuid:endpoint_id>/deactivate/", views_endpoints.deactivate, name="deactivate"),
]
