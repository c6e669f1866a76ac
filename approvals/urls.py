"""Addresses of the review desk, under /review/."""

from django.urls import path

from approvals import (
    views,
    views_afterwards,
    views_bulk,
    views_evidence,
    views_questions,
    views_queue,
    views_rejections,
)

app_name = "approvals"
urlpatterns = [
    path("", views_queue.queue, name="queue"),
    path("arrivals/", views_queue.arrivals, name="arrivals"),
    path("afterwards/", views_afterwards.afterwards, name="afterwards"),
    path("afterwards/<uuid:sample_id>/", views_afterwards.sample, name="sample"),
    path("afterwards/<uuid:sample_id>/say/", views_afterwards.say, name="say"),
    path("questions/", views_questions.to_me, name="questions"),
    path("pulse/", views_queue.pulse, name="pulse"),
    path("<uuid:proposal_id>/", views.proposal, name="proposal"),
    path("<uuid:proposal_id>/part/", views.open_part, name="open_part"),
    path("<uuid:proposal_id>/evidence/", views_evidence.evidence, name="evidence"),
    path("<uuid:proposal_id>/bar/", views.bar, name="bar"),
    path("<uuid:proposal_id>/hold/", views_queue.hold, name="hold"),
    path("<uuid:proposal_id>/decide/", views.decide, name="decide"),
    path("<uuid:proposal_id>/sign/", views.sign, name="sign"),
    path("<uuid:proposal_id>/ask/", views_questions.ask, name="ask"),
    path("<uuid:proposal_id>/answer/", views_questions.answer, name="answer"),
    path("<uuid:proposal_id>/lift/", views_rejections.lift, name="lift"),
    path("<uuid:proposal_id>/alike/", views_bulk.alike, name="alike"),
]
