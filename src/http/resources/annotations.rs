//! `/api/annotations`: notes at a time or for a while.

use actix_web::http::StatusCode;

use super::views::{Many, One, Resource, view};
use crate::catalog::{Annotation, AnnotationSettings};
use crate::http::endpoint::{Answer, Call, Endpoint, Reader, Reply, Writer, delete, get, patch, post};
use crate::http::shape::{Moment, Note, Patch, body};
use crate::ids::ObjectId;
use crate::limits::ANNOTATION_CHARS_MAX;
use crate::service::annotations::AnnotationFilter;
use crate::service::page::PageRequest;
use crate::timestamp::Timestamp;

type NoteText = Note<ANNOTATION_CHARS_MAX>;

view! {
    /// A note about a bucket or one of its data sources.
    pub struct AnnotationView<'a> of(annotation: &'a Annotation; settings = &annotation.settings) {
        /// ID of the annotation.
        #[serde(rename = "_id")]
        id: ObjectId = annotation.id,
        /// ID of the bucket.
        bucket_id: ObjectId = annotation.bucket_id,
        /// ID of the data source that it is about; null for the whole bucket.
        data_source_id: Option<ObjectId> = settings.source_id,
        /// The time that it is about, or the beginning.
        at: Timestamp = Timestamp(settings.at_ns),
        /// The end, if it is about a while; null for a moment.
        until: Option<Timestamp> = settings.until_ns.map(Timestamp),
        /// Text of the note.
        text: &'a str = &settings.text,
        /// When the annotation was created.
        created_at: Timestamp = Timestamp(annotation.created_at_ns),
        /// ID of the API key or user that created it.
        created_by: ObjectId = annotation.created_by,
        /// When the annotation last changed.
        updated_at: Timestamp = Timestamp(annotation.updated_at_ns),
    }
}

view! {
    /// A deleted annotation.
    pub struct DeletedAnnotationView of(annotation: &Annotation) {
        /// ID of the annotation.
        #[serde(rename = "_id")]
        id: ObjectId = annotation.id,
    }
}

view! {
    /// The response to a deletion.
    pub struct DeletedAnnotationAnswer of(annotation: &Annotation) {
        /// Result in words.
        message: &'static str = "annotation deleted",
        /// The deleted annotation.
        deleted_annotation: DeletedAnnotationView = DeletedAnnotationView::of(annotation),
    }
}

body! {
    /// Body of a request that creates an annotation.
    pub struct AnnotationBody {
        /// Bucket that the note is about.
        bucket_id: ObjectId,
        /// Data source of the bucket that it is about; the whole bucket when absent.
        data_source_id: Option<ObjectId>,
        /// The time that it is about, or the beginning, ISO 8601.
        at: Moment,
        /// The end, if it is about a while; not before `at`.
        until: Option<Moment>,
        /// Text of the note.
        text: NoteText,
    }
}

body! {
    /// Body of a request that changes an annotation; absent members keep their values.
    pub struct AnnotationPatchBody {
        /// Data source of the bucket that it is about; null for the whole bucket.
        #[schema(value_type = Option<ObjectId>)]
        data_source_id: Patch<ObjectId>,
        /// The time that it is about, or the beginning, ISO 8601.
        at: Option<Moment>,
        /// The end, not before `at`; null for a moment.
        #[schema(value_type = Option<Moment>)]
        until: Patch<Moment>,
        /// Text of the note.
        text: Option<NoteText>,
    }
}

pub fn endpoints() -> Vec<Endpoint> {
    vec![
        get("/api/annotations", "listAnnotations", list),
        post("/api/annotations", "createAnnotation", create).status(StatusCode::CREATED),
        get("/api/annotations/{id}", "showAnnotation", show),
        patch("/api/annotations/{id}", "updateAnnotation", update),
        delete("/api/annotations/{id}", "deleteAnnotation", remove),
    ]
}

async fn list(call: Call<Reader, (AnnotationFilter, PageRequest)>) -> Reply<Many<AnnotationView<'static>>> {
    let (filter, page_request) = call.params;
    let page = call
        .service
        .list_annotations(&call.caller, &filter, page_request)?;
    Answer::page(page_request, &page, |annotation| AnnotationView::of(annotation))
}

async fn create(call: Call<Writer, (), AnnotationBody>) -> Reply<One<AnnotationView<'static>>> {
    let body = call.body;
    let settings = AnnotationSettings {
        source_id: body.data_source_id,
        at_ns: body.at.0,
        until_ns: body.until.map(|until| until.0),
        text: body.text.0.into(),
    };
    let created = call
        .service
        .create_annotation(&call.caller, body.bucket_id, settings);
    Answer::changed("annotation created", AnnotationView::of(&*created.await?))
}

async fn show(call: Call<Reader, ObjectId>) -> Reply<One<AnnotationView<'static>>> {
    let annotation = call.service.annotation(&call.caller, call.params)?;
    Answer::one(AnnotationView::of(&annotation))
}

async fn update(call: Call<Writer, ObjectId, AnnotationPatchBody>) -> Reply<One<AnnotationView<'static>>> {
    let body = call.body;
    let change = |known: &AnnotationSettings| body.applied_to(known);
    let changed = call.service.update_annotation(&call.caller, call.params, change);
    Answer::changed("annotation updated", AnnotationView::of(&*changed.await?))
}

async fn remove(call: Call<Writer, ObjectId>) -> Reply<DeletedAnnotationAnswer> {
    let deleted = call.service.delete_annotation(&call.caller, call.params);
    Answer::of(&DeletedAnnotationAnswer::of(&*deleted.await?))
}

impl AnnotationPatchBody {
    fn applied_to(self, known: &AnnotationSettings) -> AnnotationSettings {
        AnnotationSettings {
            source_id: self.data_source_id.0.unwrap_or(known.source_id),
            at_ns: self.at.map_or(known.at_ns, |at| at.0),
            until_ns: self.until.map(|until| until.0).unwrap_or(known.until_ns),
            text: self.text.map_or_else(|| known.text.clone(), |text| text.0.into()),
        }
    }
}

impl Resource for AnnotationView<'_> {
    const ONE: &'static str = "annotation";
    const MANY: &'static str = "annotations";
}
