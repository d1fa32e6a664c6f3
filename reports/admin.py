"""Registers Report in the admin. Reports have the same pages as the other targets."""

from django.contrib import admin

from reports.models import Report
from scheduling.admin.targets.admin import TargetAdmin

admin.site.register(Report, TargetAdmin)
