"""Known models: the catalog, their prices, and the keys of their providers."""

from swink.models.catalog import PROVIDERS as PROVIDERS
from swink.models.catalog import catalog_date as catalog_date
from swink.models.catalog import catalog_source as catalog_source
from swink.models.catalog import cost_of as cost_of
from swink.models.catalog import has_provider as has_provider
from swink.models.catalog import listed as listed
from swink.models.catalog import models as models
from swink.models.catalog import parse_model as parse_model
from swink.models.catalog import price_of as price_of
from swink.models.catalog import register_provider as register_provider
from swink.models.catalog import registered as registered
from swink.models.catalog import service_tiers as service_tiers
from swink.models.catalog import stream_fn_for as stream_fn_for
from swink.models.catalog import with_limits as with_limits
