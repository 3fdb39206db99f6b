//! Function `settings`: what administrators configure and look after.
//!
//! Lives here: the audit log, tags, links, notification channels and subscriptions, markers, deletions, retention and
//! storage, the model for diagnoses, and what is said where no language model is configured. Must not live here: accounts, which the function `users` serves; SQL.

mod ai;
mod answer;
mod audit;
mod body;
mod channels;
mod deletions;
mod desk;
mod flakiness;
mod group;
mod links;
mod markers;
mod model;
mod notifications;
mod quota;
mod retention;
mod smtp;
mod source_control;
mod storage;
mod subscriptions;
mod tags;
mod test_functions;
mod timeouts;
mod unsubscribe;

use axum::Router;
use callboard_auth::RouteId;
use callboard_http::{AppState, Routes};
use utoipa::OpenApi;

/// The routes of this function.
pub fn router(state: AppState) -> Router {
    Routes::new(state)
        .on(RouteId::StepResolution, ai::resolve_step)
        .on(RouteId::ModelSettings, model::get)
        .on(RouteId::EditModelSettings, model::edit)
        .on(RouteId::PutModelSettings, model::edit)
        .on(RouteId::TestModel, model::test)
        .on(RouteId::ModelUsage, model::usage)
        .on(RouteId::ModelStatus, model::status)
        .on(RouteId::ListAudit, audit::list)
        .on(RouteId::ListTags, tags::list)
        .on(RouteId::CreateTag, tags::create)
        .on(RouteId::EditTag, tags::edit)
        .on(RouteId::PutTag, tags::edit)
        .on(RouteId::DeleteTag, tags::delete)
        .on(RouteId::ListChannels, channels::list)
        .on(RouteId::CreateChannel, channels::create)
        .on(RouteId::EditChannel, channels::edit)
        .on(RouteId::DeleteChannel, channels::delete)
        .on(RouteId::TestChannel, channels::test)
        .on(RouteId::ListDeliveries, channels::deliveries)
        .on(RouteId::RetryDelivery, channels::retry)
        .on(RouteId::ListSubscriptions, subscriptions::list)
        .on(RouteId::CreateSubscription, subscriptions::create)
        .on(RouteId::EditSubscription, subscriptions::edit)
        .on(RouteId::DeleteSubscription, subscriptions::delete)
        .on(RouteId::ListNotifications, notifications::list)
        .on(RouteId::ReadNotifications, notifications::read_all)
        .on(RouteId::ReadNotification, notifications::read)
        .on(RouteId::SmtpSettings, smtp::get)
        .on(RouteId::EditSmtpSettings, smtp::edit)
        .on(RouteId::PutSmtpSettings, smtp::edit)
        .on(RouteId::TestSmtp, smtp::test)
        .on(RouteId::InstanceQuota, quota::of_instance)
        .on(RouteId::EditInstanceQuota, quota::edit_instance)
        .on(RouteId::PutInstanceQuota, quota::edit_instance)
        .on(RouteId::ProjectQuota, quota::of_project)
        .on(RouteId::EditProjectQuota, quota::edit_project)
        .on(RouteId::PutProjectQuota, quota::edit_project)
        .on(RouteId::Unsubscribe, unsubscribe::post)
        .on(RouteId::UnsubscribeLink, unsubscribe::get)
        .on(RouteId::ListLinks, links::list)
        .on(RouteId::CreateLink, links::create)
        .on(RouteId::EditLink, links::edit)
        .on(RouteId::PutLink, links::edit)
        .on(RouteId::RefreshLink, links::refresh)
        .on(RouteId::DeleteLink, links::delete)
        .on(RouteId::ListDeletions, deletions::list)
        .on(RouteId::GetDeletion, deletions::get)
        .on(RouteId::RestoreDeletion, deletions::restore)
        .on(RouteId::CleanUp, deletions::clean_up)
        .on(RouteId::CleanUpByQuery, deletions::clean_up_by_query)
        .on(RouteId::InstanceStats, storage::stats)
        .on(RouteId::InstanceStorage, storage::of_instance)
        .on(RouteId::ProjectStorage, storage::of_project)
        .on(RouteId::InstanceFlakiness, flakiness::of_instance)
        .on(RouteId::EditInstanceFlakiness, flakiness::edit_instance)
        .on(RouteId::PutInstanceFlakiness, flakiness::edit_instance)
        .on(RouteId::ProjectFlakiness, flakiness::of_project)
        .on(RouteId::EditProjectFlakiness, flakiness::edit_project)
        .on(RouteId::PutProjectFlakiness, flakiness::edit_project)
        .on(RouteId::TimeoutSettings, timeouts::get)
        .on(RouteId::EditTimeoutSettings, timeouts::edit)
        .on(RouteId::PutTimeoutSettings, timeouts::edit)
        .on(RouteId::SourceControlSettings, source_control::get)
        .on(RouteId::EditSourceControlSettings, source_control::edit)
        .on(RouteId::PutSourceControlSettings, source_control::edit)
        .on(RouteId::InstanceRetention, retention::of_instance)
        .on(RouteId::EditInstanceRetention, retention::edit_instance)
        .on(RouteId::PutInstanceRetention, retention::edit_instance)
        .on(RouteId::ProjectRetention, retention::of_project)
        .on(RouteId::EditProjectRetention, retention::edit_project)
        .on(RouteId::PutProjectRetention, retention::edit_project)
        .on(RouteId::PreviewRetention, retention::preview_project)
        .on(RouteId::PreviewInstanceRetention, retention::preview_instance)
        .on(RouteId::UndoInstanceRetention, retention::undo_instance)
        .on(RouteId::UndoProjectRetention, retention::undo_project)
        .on(RouteId::ListMarkers, markers::list)
        .on(RouteId::CreateMarker, markers::create)
        .on(RouteId::EditMarker, markers::edit)
        .on(RouteId::PutMarker, markers::edit)
        .on(RouteId::DeleteMarker, markers::delete)
        .on(RouteId::ListTestFunctions, test_functions::list)
        .on(RouteId::CreateTestFunction, test_functions::create)
        .on(RouteId::EditTestFunction, test_functions::edit)
        .on(RouteId::PutTestFunction, test_functions::edit)
        .on(RouteId::DeleteTestFunction, test_functions::delete)
        .into_router()
}

/// Its part of the OpenAPI document.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    #[derive(OpenApi)]
    #[openapi(
        paths(
            ai::resolve_step,
            model::get,
            model::edit,
            model::test,
            model::usage,
            model::status,
            audit::list,
            tags::list,
            tags::create,
            tags::edit,
            tags::delete,
            channels::list,
            channels::create,
            channels::edit,
            channels::delete,
            channels::test,
            channels::deliveries,
            channels::retry,
            subscriptions::list,
            subscriptions::create,
            subscriptions::edit,
            subscriptions::delete,
            notifications::list,
            notifications::read_all,
            notifications::read,
            smtp::get,
            smtp::edit,
            smtp::test,
            quota::of_instance,
            quota::edit_instance,
            quota::of_project,
            quota::edit_project,
            unsubscribe::post,
            unsubscribe::get,
            links::list,
            links::create,
            links::edit,
            links::refresh,
            links::delete,
            deletions::list,
            deletions::get,
            deletions::restore,
            deletions::clean_up,
            deletions::clean_up_by_query,
            storage::stats,
            storage::of_instance,
            storage::of_project,
            flakiness::of_instance,
            flakiness::edit_instance,
            flakiness::of_project,
            flakiness::edit_project,
            timeouts::get,
            timeouts::edit,
            source_control::get,
            source_control::edit,
            retention::of_instance,
            retention::edit_instance,
            retention::of_project,
            retention::edit_project,
            retention::preview_project,
            retention::preview_instance,
            retention::undo_instance,
            retention::undo_project,
            markers::list,
            markers::create,
            markers::edit,
            markers::delete,
            test_functions::list,
            test_functions::create,
            test_functions::edit,
            test_functions::delete
        ),
        tags((name = "settings", description = "What administrators configure and look after"))
    )]
    struct Document;
    Document::openapi()
}
