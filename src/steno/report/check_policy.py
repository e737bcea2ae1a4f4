"""Check rules that the config file or the command line silences or reweights."""

from steno.check.checkup import Policy, make_policy
from steno.errors import BadRequest
from steno.store.config import Config, read_config


def load_check_policy(silence: tuple[str, ...] = (), severity: tuple[str, ...] = ()) -> Policy:
    """Return what the config file and the options make of the rules; options win.

    Raises:
        BadRequest: there is no such rule or severity; of the file, the line is named.
    """
    config = read_config()
    _reject_unknown_rules(config)
    severities = dict(config.severity)
    for override in severity:
        name, equals, level = override.partition("=")
        if not equals:
            raise BadRequest(f"not ID=LEVEL: {override!r}", hint="such as tools.unanswered=info")
        severities[name] = level
    return make_policy([*config.silence, *silence], severities)


def _reject_unknown_rules(config: Config) -> None:
    silenced = [(name, [name], None) for name in config.silence]
    reweighted = [(name, (), {name: level}) for name, level in config.severity.items()]
    for name, silence, severity in [*silenced, *reweighted]:
        try:
            make_policy(silence, severity)
        except BadRequest as error:
            raise config.error_at(name, str(error), error.hint) from error
