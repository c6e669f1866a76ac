"""Taking lists of the history along, under /history/."""

from django.urls import path

from audit import views_taking

app_name = "lists"
urlpatterns = [path("list/", views_taking.take, name="take")]
