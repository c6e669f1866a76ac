"""Addresses of people, groups, automations, tokens and the organisation, under /people/."""

from django.urls import path

from access import views_absences, views_agents, views_people, views_tenant

app_name = "people"
urlpatterns = [
    path("", views_people.people, name="people"),
    path("new/", views_people.new_person, name="new_person"),
    path("groups/", views_tenant.groups, name="groups"),
    path("groups/new/", views_tenant.new_group, name="new_group"),
    path("groups/<uuid:group_id>/", views_tenant.group, name="group"),
    path("automations/", views_agents.agents, name="agents"),
    path("automations/new/", views_agents.new_agent, name="new_agent"),
    path("automations/<uuid:agent_id>/", views_agents.agent, name="agent"),
    path("automations/<uuid:agent_id>/bounds/", views_agents.bounds, name="bounds"),
    path("automations/<uuid:agent_id>/deactivate/", views_agents.deactivate, name="deactivate_agent"),
    path("automations/<uuid:agent_id>/reactivate/", views_agents.reactivate, name="reactivate_agent"),
    path("automations/<uuid:agent_id>/tokens/", views_agents.issue, name="issue"),
    path("tokens/", views_agents.tokens, name="tokens"),
    path("tokens/<uuid:token_id>/rotate/", views_agents.rotate, name="rotate"),
    path("tokens/<uuid:token_id>/revoke/", views_agents.revoke, name="revoke"),
    path("hours/", views_absences.hours, name="hours"),
    path("hours/set/", views_absences.set_hours, name="set_hours"),
    path("hours/clear/", views_absences.clear_hours, name="clear_hours"),
    path("organisation/", views_tenant.organisation, name="organisation"),
    path("organisation/break-glass/", views_tenant.break_glass, name="break_glass"),
    path("organisation/break-glass/off/", views_tenant.break_glass_off, name="break_glass_off"),
    path("<uuid:user_id>/", views_people.person, name="person"),
    path("<uuid:user_id>/roles/", views_people.roles, name="roles"),
    path("<uuid:user_id>/groups/", views_people.groups, name="person_groups"),
    path("<uuid:user_id>/deactivate/", views_people.deactivate, name="deactivate"),
    path("<uuid:user_id>/reactivate/", views_people.reactivate, name="reactivate"),
    path("<uuid:user_id>/accounts/", views_people.link, name="link"),
    path("<uuid:user_id>/accounts/apart/", views_people.unlink, name="unlink"),
    path("<uuid:user_id>/absences/", views_absences.of_person, name="absences"),
    path("<uuid:user_id>/absences/new/", views_absences.note, name="note_absence"),
    path("<uuid:user_id>/absences/end/", views_absences.end, name="end_absence"),
    path("<uuid:user_id>/duties/", views_people.duty, name="duty"),
    path("<uuid:user_id>/duties/end/", views_people.end_duty, name="end_duty"),
]
