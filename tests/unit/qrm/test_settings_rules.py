"""The rules of the settings: as the settings say, for the machine that asks, and worked out anew only where need be."""

from services.qrm.settings import QrmSettings
from services.qrm.settings_rules import SettingsRules

MEMORY = {0: 1 << 30, 1: 2 << 30}


def test_the_rules_are_those_of_the_settings_on_this_machine() -> None:
    settings = QrmSettings.model_validate({"burst_percent": 7, "starts": {"pods_per_cpu": 3}})
    rules = SettingsRules().of(settings, 8, MEMORY)
    assert rules.isolation == settings.isolation_rules(3 << 30)
    assert rules.starts == settings.starts.rules(8)
    assert rules.quota_burst == settings.quota_burst.rules()


def test_they_are_worked_out_anew_for_other_settings_and_for_another_machine_only() -> None:
    kept, settings = SettingsRules(), QrmSettings()
    first = kept.of(settings, 8, MEMORY)
    assert kept.of(settings, 8, dict(MEMORY)) is first
    assert kept.of(settings, 16, MEMORY).starts.most == 2 * first.starts.most
    other = QrmSettings.model_validate({"burst_percent": 7})
    assert kept.of(other, 16, MEMORY).isolation.burst_percent == 7
    assert kept.of(other, 16, {0: 1 << 30}).isolation.machine_bytes == 1 << 30
