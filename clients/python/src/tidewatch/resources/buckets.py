"""Buckets with their data sources and keys, and analytics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from tidewatch._call import (
    UNSET,
    Call,
    Page,
    Unset,
    changed,
    delete,
    get,
    given,
    member,
    page,
    patch,
    path,
    post,
    whole,
)
from tidewatch._resource import M, Resource, endpoint, entries
from tidewatch._transport import AsyncTransport, SyncTransport
from tidewatch.models.accounts import CreatedKey, DeletedKey, Key
from tidewatch.models.buckets import (
    Bucket,
    BucketAnalytics,
    DeletedBucket,
    DeletedSource,
    Dimension,
    Dimensions,
    DimensionValue,
    Duplicates,
    Field,
    Overview,
    Series,
    Source,
)
from tidewatch.models.common import Time

Schema = Mapping[str, Field]
Period = Literal["24h", "7d", "30d", "90d"]


class Buckets(Resource[M]):
    """Buckets of the organization; admin key or token."""

    @endpoint
    def list(self, *, limit: int = 100, offset: int = 0) -> Call[Page[Bucket]]:
        """`GET /api/buckets`: a page of buckets, oldest first."""
        return get(path("buckets"), page("buckets"), limit=limit, offset=offset)

    iterate = entries(list)

    @endpoint
    def create(self, name: str, *, description: str | None = None, retention_days: int | None = None) -> Call[Bucket]:
        """`POST /api/buckets`."""
        body = given(name=name, description=description, retention_days=retention_days)
        return post(path("buckets"), body, member("bucket"))

    @endpoint
    def get(self, bucket_id: str) -> Call[Bucket]:
        """`GET /api/buckets/:id`: the bucket with its `stats`."""
        return get(path("buckets", bucket_id), member("bucket"))

    @endpoint
    def update(
        self,
        bucket_id: str,
        *,
        name: str | Unset = UNSET,
        description: str | Unset | None = UNSET,
        retention_days: int | Unset = UNSET,
    ) -> Call[Bucket]:
        """`PATCH /api/buckets/:id`."""
        body = changed(name=name, description=description, retention_days=retention_days)
        return patch(path("buckets", bucket_id), body, member("bucket"))

    @endpoint
    def delete(self, bucket_id: str) -> Call[DeletedBucket]:
        """`DELETE /api/buckets/:id`: removes the bucket with its sources, points, keys and rules."""
        return delete(path("buckets", bucket_id), whole)


class Sources(Resource[M]):
    """Data sources of a bucket."""

    def __init__(self, transport: SyncTransport | AsyncTransport, bucket_id: str) -> None:
        super().__init__(transport)
        self._bucket_id = bucket_id

    @endpoint
    def list(self, *, limit: int = 100, offset: int = 0) -> Call[Page[Source]]:
        """`GET /api/buckets/:bucketId/sources`: a page of sources, oldest first."""
        return get(path("buckets", self._bucket_id, "sources"), page("dataSources"), limit=limit, offset=offset)

    iterate = entries(list)

    @endpoint
    def create(
        self,
        name: str,
        schema: Schema,
        *,
        type: str | None = None,  # noqa: A002 - the API's name
        description: str | None = None,
        schema_mode: Literal["strict", "extend"] | None = None,
        downsampling: bool | None = None,
        status: Literal["active", "inactive"] | None = None,
        dimensions: Dimensions | None = None,
        duplicates: Duplicates | None = None,
        expected_interval_seconds: int | None = None,
    ) -> Call[Source]:
        """`POST /api/buckets/:bucketId/sources`."""
        body = given(
            name=name,
            schema=schema,
            type=type,
            description=description,
            schema_mode=schema_mode,
            downsampling=downsampling,
            status=status,
            dimensions=dimensions,
            duplicates=duplicates,
            expected_interval_seconds=expected_interval_seconds,
        )
        return post(path("buckets", self._bucket_id, "sources"), body, member("dataSource"))

    @endpoint
    def get(self, source_id: str) -> Call[Source]:
        """`GET /api/buckets/:bucketId/sources/:sourceId`."""
        return get(path("buckets", self._bucket_id, "sources", source_id), member("dataSource"))

    @endpoint
    def update(
        self,
        source_id: str,
        *,
        name: str | Unset = UNSET,
        schema: Schema | Unset = UNSET,
        type: str | Unset = UNSET,  # noqa: A002 - the API's name
        description: str | Unset | None = UNSET,
        schema_mode: Literal["strict", "extend"] | Unset = UNSET,
        downsampling: bool | Unset = UNSET,
        status: Literal["active", "inactive"] | Unset = UNSET,
        dimensions: Dimensions | Unset | None = UNSET,
        duplicates: Duplicates | Unset = UNSET,
        expected_interval_seconds: int | Unset | None = UNSET,
    ) -> Call[Source]:
        """`PATCH /api/buckets/:bucketId/sources/:sourceId`: a schema may gain fields, not lose or retype them."""
        body = changed(
            name=name,
            schema=schema,
            type=type,
            description=description,
            schema_mode=schema_mode,
            downsampling=downsampling,
            status=status,
            dimensions=dimensions,
            duplicates=duplicates,
            expected_interval_seconds=expected_interval_seconds,
        )
        return patch(path("buckets", self._bucket_id, "sources", source_id), body, member("dataSource"))

    @endpoint
    def delete(self, source_id: str) -> Call[DeletedSource]:
        """`DELETE /api/buckets/:bucketId/sources/:sourceId`: removes the source with its points and rules."""
        return delete(path("buckets", self._bucket_id, "sources", source_id), whole)

    @endpoint
    def dimensions(self, source_id: str, *, limit: int = 100, offset: int = 0) -> Call[Page[Dimension]]:
        """`GET /api/buckets/:bucketId/sources/:sourceId/dimensions`: a page of dimensions, by name."""
        below = path("buckets", self._bucket_id, "sources", source_id, "dimensions")
        return get(below, page("dimensions"), limit=limit, offset=offset)

    @endpoint
    def dimension_values(
        self, source_id: str, name: str, *, prefix: str | None = None, limit: int = 100, offset: int = 0
    ) -> Call[Page[DimensionValue]]:
        """`GET …/dimensions/:name`: a page of its values, those that begin with `prefix`."""
        below = path("buckets", self._bucket_id, "sources", source_id, "dimensions", name)
        return get(below, page("values"), prefix=prefix, limit=limit, offset=offset)

    @endpoint
    def series(
        self, source_id: str, dimensions: Mapping[str, str] | None = None, *, limit: int = 100, offset: int = 0
    ) -> Call[Page[Series]]:
        """`GET …/series`: a page of the series whose dimensions have these values."""
        below = path("buckets", self._bucket_id, "sources", source_id, "series")
        # Names of dimensions are sent as they are.
        params = {**(dimensions or {}), "limit": str(limit), "offset": str(offset)}
        return Call("GET", below, page("series"), params=params, repeatable=True)


class _Keys(Resource[M]):
    """What keys of buckets and of the organization have in common."""

    def _path(self, *more: str) -> str:
        raise NotImplementedError

    @endpoint
    def list(self, *, limit: int = 100, offset: int = 0) -> Call[Page[Key]]:
        """A page of keys, oldest first, without their values."""
        return get(self._path(), page("apiKeys"), limit=limit, offset=offset)

    iterate = entries(list)

    @endpoint
    def delete(self, key_id: str) -> Call[DeletedKey]:
        """Deletes a key, which stops working at once."""
        return delete(self._path(key_id), member("deletedKey"))

    @endpoint
    def rotate(self, key_id: str, *, overlap_seconds: int) -> Call[CreatedKey]:
        """Gives a key a new value, shown this once; the old one works for `overlap_seconds`, 0 to 604800, longer."""
        return post(self._path(key_id, "rotate"), given(overlap_seconds=overlap_seconds), member("apiKey"))


class BucketKeys(_Keys[M]):
    """Write and read keys of a bucket: `/api/buckets/:bucketId/keys`; admin key or token."""

    def __init__(self, transport: SyncTransport | AsyncTransport, bucket_id: str) -> None:
        super().__init__(transport)
        self._bucket_id = bucket_id

    def _path(self, *more: str) -> str:
        return path("buckets", self._bucket_id, "keys", *more)

    @endpoint
    def create(
        self,
        name: str,
        type: Literal["write", "read"],  # noqa: A002 - the API's name
        *,
        expires_at: Time | None = None,
    ) -> Call[CreatedKey]:
        """`POST /api/buckets/:bucketId/keys`: the answer's `key` is shown this once."""
        return post(self._path(), given(name=name, type=type, expires_at=expires_at), member("apiKey"))


class OrganizationKeys(_Keys[M]):
    """Admin and integration keys: `/api/organization/keys`."""

    def _path(self, *more: str) -> str:
        return path("organization", "keys", *more)

    @endpoint
    def create(
        self,
        name: str,
        type: Literal["admin", "integration"],  # noqa: A002 - the API's name
        *,
        expires_at: Time | None = None,
    ) -> Call[CreatedKey]:
        """`POST /api/organization/keys`: the answer's `key` is shown this once. A new admin key needs a token."""
        return post(self._path(), given(name=name, type=type, expires_at=expires_at), member("apiKey"))


class Analytics(Resource[M]):
    """Figures of buckets and of the organization."""

    @endpoint
    def bucket(self, bucket_id: str, *, period: Period | None = None) -> Call[BucketAnalytics]:
        """`GET /api/analytics/buckets/:bucketId`, for 7 days unless `period` says otherwise."""
        return get(path("analytics", "buckets", bucket_id), member("analytics"), period=period)

    @endpoint
    def overview(self) -> Call[Overview]:
        """`GET /api/analytics/overview`: the whole organization."""
        return get(path("analytics", "overview"), member("overview"))
