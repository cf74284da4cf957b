"""The local page over the same functions: `heed serve`, for this machine only."""

from heedful.errors import MissingPartError as _MissingPartError

try:
    from heedful.web.app import BuiltPage, PageSettings, create_app
    from heedful.web.security import Access
    from heedful.web.server import serve
except ModuleNotFoundError as _error:
    if str(_error.name).startswith("heedful"):
        raise
    raise _MissingPartError.of("heedful.web", str(_error.name), "web") from None

__all__ = ["Access", "BuiltPage", "PageSettings", "create_app", "serve"]
