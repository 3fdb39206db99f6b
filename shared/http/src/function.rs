//! The whole `main` of a function: configuration, state once, then events or,
//! outside of a function host, a port. None of them migrates but the one that is
//! there for nothing else, which no client reaches.

use std::process::ExitCode;

use axum::Router;
use axum::response::Response;
use lambda_http::{LambdaEvent, service_fn};
use serde_json::Value;

use crate::front::front;
use crate::gateway;
use crate::sandbox::Door;
use crate::serve;
use crate::state::AppState;
use callboard_platform::config::{Config, EXIT_CONFIG, Platform};
use callboard_platform::telemetry;

/// Serves one function crate.
///
/// ```no_run
/// # use callboard_http::{AppState, Routes};
/// # fn router(state: AppState) -> axum::Router { Routes::new(state).into_router() }
/// #[tokio::main]
/// async fn main() -> std::process::ExitCode {
///     callboard_http::serve_function("health", router).await
/// }
/// ```
pub async fn serve_function(name: &str, router: impl FnOnce(AppState) -> Router) -> ExitCode {
    let not_scheduled = |_: AppState| async { Err("this function does nothing on a schedule") };
    serve_scheduled_function(name, router, not_scheduled).await
}

/// Serves a function crate that the platform's scheduler invokes as well.
/// `scheduled` runs for every event that is no HTTP request: only who may
/// invoke the function itself can send one.
pub async fn serve_scheduled_function<F, E>(
    name: &str,
    router: impl FnOnce(AppState) -> Router,
    scheduled: impl Fn(AppState) -> F,
) -> ExitCode
where
    F: Future<Output = Result<Response, E>> + Send,
    E: Into<lambda_http::Error>,
{
    install_tls();
    let config = match Config::from_process_env() {
        Ok(config) => config,
        Err(errors) => {
            telemetry::start("info", Platform::Server);
            return refuse(name, &errors);
        }
    };
    telemetry::start(&config.log, config.platform);
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    let platform = config.platform;
    let (host, port) = (config.host.clone(), config.port);
    let state = match AppState::connect(config).await {
        Ok(state) => state,
        Err(error) => return fail(name, &error),
    };
    // Asked again by the first request when it fails here.
    if let Err(error) = state.refresh_auth_mode().await {
        tracing::warn!(%error, "the authentication mode of other processes was not compared");
    }
    let router = front(router(state.clone()), state.clone(), Door::Main);
    match platform {
        Platform::Lambda => {
            match lambda_http::run(gateway::or_scheduled(router, || scheduled(state.clone()))).await {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => fail(name, &error),
            }
        }
        Platform::Server => match serve::listen(&host, port).await {
            Ok(listener) => {
                tracing::info!("{name} listens on http://{host}:{port}");
                serve::serve(vec![(listener, router)], serve::stop_requested()).await;
                state.leave().await;
                ExitCode::SUCCESS
            }
            Err(error) => fail(name, &error),
        },
    }
}

/// Serves a function that a deployment or an operator invokes, and no client. `invoked` gets
/// the event; what it says is the answer. Outside of a function host it is called once.
pub async fn serve_invoked_function<F, E>(name: &str, invoked: impl Fn(Value) -> F) -> ExitCode
where
    F: Future<Output = Result<Value, E>>,
    E: std::error::Error + Send + Sync + 'static,
{
    install_tls();
    let platform = Platform::of_process();
    telemetry::start("info", platform);
    if platform == Platform::Server {
        return match invoked(Value::Null).await {
            Ok(answer) => {
                tracing::info!("{name}: {answer}");
                ExitCode::SUCCESS
            }
            Err(error) => fail(name, &error),
        };
    }
    let handler = service_fn(|event: LambdaEvent<Value>| {
        let answered = invoked(event.payload);
        async { answered.await.map_err(lambda_http::Error::from) }
    });
    match lambda_http::lambda_runtime::run(handler).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(name, &error),
    }
}

/// Makes ring the TLS provider of this process. Libraries ask for the default
/// one at their first connection.
pub fn install_tls() {
    // The only error is that a provider is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

fn refuse(name: &str, errors: &dyn std::fmt::Display) -> ExitCode {
    tracing::error!("{name} does not start: {errors}");
    ExitCode::from(u8::try_from(EXIT_CONFIG).unwrap_or(1))
}

fn fail(name: &str, error: &dyn std::fmt::Display) -> ExitCode {
    tracing::error!("{name} stops: {error}");
    ExitCode::FAILURE
}
