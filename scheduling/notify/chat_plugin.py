"""Makes the plugin of apprise for the address of a channel."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec, module_from_spec
from typing import Any

from scheduling.core.chat_services import SCHEMES, SERVICES, ChatService, scheme_of, with_own_scheme
from scheduling.notify.chat_address import ChatAddressError, incomplete, not_possible, option_refused, too_many

IS_INSTALLED = all(find_spec(name) is not None for name in ("apprise", "requests_hardened"))


def plugin_of(address: str, schemes: tuple[str, ...]) -> tuple[Any, ChatService]:
    """The plugin that sends to this address, and its service.

    Args:
        address: the address itself, not the name of an environment variable.
        schemes: the schemes that are allowed.

    Raises:
        ChatAddressError: the address cannot be used.
    """
    service, parsed = _parsed(address, schemes)
    strange = {name for name in parsed.get("qsd") or () if name not in service.options}
    if any(not name or name[0] not in (service.prefixes or ()) for name in strange):
        raise option_refused(service)
    try:
        plugin = _class_of(service)(asset=_asset(), **parsed)
    except Exception:  # the texts of these errors have parts of the address in them
        raise incomplete(service, templates(service)) from None
    if len(plugin) > 1:
        raise too_many(len(plugin))
    # Whatever the address says: no switch of certificates, no redirect, no waiting, no second try.
    plugin.verify_certificate, plugin.redirects, plugin.retry = True, False, 0
    plugin.throttle = lambda *_arguments, **_options: None
    return plugin, service


def _parsed(address: str, schemes: tuple[str, ...]) -> tuple[ChatService, dict[str, Any]]:
    if "mmosts" in schemes:
        address = with_own_scheme(address)
    scheme = scheme_of(address)
    if scheme == "https":  # the services show the addresses of their webhooks in this form
        for service in SERVICES:
            found = (
                _quietly(_class_of(service).parse_native_url, address) if set(service.schemes) & {*schemes} else None
            )
            if found and found.get("schema") in schemes and found["schema"] in service.schemes:
                return service, found
        raise not_possible(schemes)
    if scheme not in schemes:
        raise not_possible(schemes)
    service = SCHEMES[scheme]
    # `#` before the name of a room begins no fragment. Apprise does the same for addresses that it gets itself.
    found = _quietly(_class_of(service).parse_url, address.replace("/#", "/%23"))
    if not found or found.get("schema") != scheme:
        raise incomplete(service, templates(service))
    return service, found


def _quietly(parse: Any, address: str) -> dict[str, Any] | None:
    try:
        return dict(parse(address) or {}) or None
    except Exception:
        return None


def templates(service: ChatService) -> list[str]:
    """What addresses of the service look like, such as `slack://{token_a}/{token_b}/{token_c}`."""
    return [text.replace("{schema}", service.schemes[0]) for text in _class_of(service).templates]


@lru_cache(maxsize=64)
def _class_of(service: ChatService) -> Any:
    """The class of the plugin, in a copy of its module that sends through the guard.

    The copy leaves the module itself alone, because the project may use apprise for purposes of its own.
    """
    import requests

    from scheduling.notify.chat_http import GuardedRequests

    name, _dot, kind = service.plugin.partition(".")
    spec = find_spec(f"apprise.plugins.{name}")
    if spec is None or spec.loader is None:
        raise ChatAddressError(f"The installed version of apprise cannot send to {service.name}.")
    module: Any = module_from_spec(spec)
    spec.loader.exec_module(module)
    if vars(module).get("requests") is not requests:
        raise ChatAddressError(f"The installed version of apprise sends to {service.name} in an unknown way.")
    module.requests = GuardedRequests()
    return getattr(module, kind)


def _asset() -> Any:
    """How messages are signed. Without this, they have the name and the logo of apprise."""
    from apprise import AppriseAsset

    return AppriseAsset(
        app_id="cronsite", app_desc="cronsite", app_url="", image_url_mask="", image_url_logo="", image_path_mask="",
        storage_mode="memory", async_mode=False, http_redirects=False, secure_logging=True,
    )  # fmt: skip
