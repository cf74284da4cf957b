"""The server of the page that `heed serve` opens, for this machine only.

It may use every room below it; the page asks by POST and WebSocket, one module `…_api` a view.
Begin with `app` (the routes) and `security` (who may ask); `answers` is how questions are answered.
"""

from heedful.errors import MissingPartError as _MissingPartError

try:
    from heedful.web.app import BuiltPage, PageSettings, create_app, serve
    from heedful.web.security import Access
except ModuleNotFoundError as _error:
    if str(_error.name).startswith("heedful"):
        raise
    raise _MissingPartError.of("heedful.web", str(_error.name), "web") from None

__all__ = ["Access", "BuiltPage", "PageSettings", "create_app", "serve"]
