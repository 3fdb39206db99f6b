//! What a gateway in front of a function changes, put right on both ways: the
//! path it decoded on the way in, and repeated headers, of which it would
//! keep one, on the way out.

use axum::Router;
use axum::middleware::map_response;
use axum::response::Response;
use callboard_auth::client_address::Peer;
use futures::TryFutureExt as _;
use futures::future::Either;
use http::Uri;
use http::header::{HeaderValue, SET_COOKIE};
use lambda_http::RequestExt;
use lambda_http::request::RequestContext;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use tower::util::MapRequest;
use tower::{Service, ServiceExt as _, service_fn};

/// What a path holds as it is (RFC 3986: pchar, and the slash between segments).
const AS_IT_IS: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b':')
    .remove(b'@');

/// The same of a path that is encoded already.
const ENCODED: &AsciiSet = &AS_IT_IS.remove(b'%');

type Correct = fn(lambda_http::Request) -> lambda_http::Request;

/// What a function host calls: the router for a request, `scheduled` for an
/// event that is none.
pub(crate) fn or_scheduled<S, F, E>(
    router: Router,
    scheduled: S,
) -> impl Service<lambda_http::Request, Response = Response, Error = lambda_http::Error, Future: Send>
where
    S: Fn() -> F,
    F: Future<Output = Result<Response, E>> + Send,
    E: Into<lambda_http::Error>,
{
    let router = behind(router);
    service_fn(move |request: lambda_http::Request| {
        let is_http = !matches!(request.request_context_ref(), Some(RequestContext::PassThrough));
        if is_http {
            Either::Left(router.clone().oneshot(request).map_err(|never| match never {}))
        } else {
            Either::Right(scheduled().map_err(Into::into))
        }
    })
}

/// A router as it has to stand behind a gateway.
fn behind(router: Router) -> MapRequest<Router, Correct> {
    // Paths are put right before anything is routed by them.
    MapRequest::new(router.layer(map_response(joined)), as_sent)
}

/// The request with the path the client sent.
///
/// HTTP APIs hand the path over decoded; read as a URL again, a `#` in a file
/// name would end the path, `%41` would become `A`, and `..` would vanish
/// before anybody could refuse it. Function URLs use the same event and leave
/// the path alone. So do REST APIs and load balancers; but the path of a REST
/// API is read with the name of its stage in front, which no route knows.
fn as_sent(mut request: lambda_http::Request) -> lambda_http::Request {
    let form = match request.request_context_ref() {
        Some(RequestContext::ApiGatewayV2(context))
            if !context.domain_name.as_deref().is_some_and(|name| name.contains(".lambda-url.")) =>
        {
            Some(AS_IT_IS)
        }
        Some(RequestContext::ApiGatewayV1(_)) => Some(ENCODED),
        _ => None,
    };
    if let Some(peer) = source(&request) {
        request.extensions_mut().insert(peer);
    }
    if let Some(kept) = form {
        let path = request.raw_http_path();
        // What followed a decoded `#` was dropped, the query with it; it is there a second time, parsed.
        let query = match request.uri().query() {
            None if path.contains('#') => request.query_string_parameters().to_query_string(),
            query => query.unwrap_or_default().to_owned(),
        };
        if let Some(uri) = with_path(request.uri(), path, kept, &query) {
            *request.uri_mut() = uri;
        }
    }
    request
}

/// Who connected to the gateway, as its event says. A load balancer says it
/// in the last forwarded address, which it writes itself.
fn source(request: &lambda_http::Request) -> Option<Peer> {
    let address = match request.request_context_ref()? {
        RequestContext::ApiGatewayV2(context) => context.http.source_ip.as_deref(),
        RequestContext::ApiGatewayV1(context) => context.identity.source_ip.as_deref(),
        RequestContext::Alb(_) => {
            let line = request.headers().get_all("x-forwarded-for").iter().next_back()?;
            line.to_str().ok()?.rsplit(',').next()
        }
        _ => None,
    };
    address?.trim().parse().ok().map(Peer)
}

fn with_path(uri: &Uri, path: &str, kept: &'static AsciiSet, query: &str) -> Option<Uri> {
    let mut target = utf8_percent_encode(path, kept).to_string();
    if !query.is_empty() {
        target.push('?');
        target.push_str(query);
    }
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(target.parse().ok()?);
    Uri::from_parts(parts).ok()
}

/// The answer with one header of each name, as events hold them. Cookies are
/// the exception and travel in a list of their own.
async fn joined(mut response: Response) -> Response {
    let repeated: Vec<_> = response
        .headers()
        .keys()
        .filter(|name| *name != SET_COOKIE && response.headers().get_all(*name).iter().nth(1).is_some())
        .cloned()
        .collect();
    for name in repeated {
        let values: Vec<_> = response.headers().get_all(&name).iter().map(HeaderValue::as_bytes).collect();
        if let Ok(value) = HeaderValue::from_bytes(&values.join(&b", "[..])) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use http::header::HeaderMap;

    use super::*;

    #[test]
    fn a_decoded_path_is_encoded_again() {
        let uri: Uri = "https://tests.example.org/anything".parse().unwrap();
        let path = |decoded| with_path(&uri, decoded, AS_IT_IS, "q=%20").unwrap().to_string();
        assert_eq!(path("/f/g/a b#c%41.txt"), "https://tests.example.org/f/g/a%20b%23c%2541.txt?q=%20");
        assert_eq!(path("/api/../x"), "https://tests.example.org/api/../x?q=%20");
        assert_eq!(path("/naïve"), "https://tests.example.org/na%C3%AFve?q=%20");
        let encoded = with_path(&uri, "/f/g/a%20b%23c%2541.txt", ENCODED, "").unwrap();
        assert_eq!(encoded.to_string(), "https://tests.example.org/f/g/a%20b%23c%2541.txt");
    }

    #[tokio::test]
    async fn repeated_headers_are_joined_and_cookies_are_not() {
        let mut headers = HeaderMap::new();
        for (name, value) in
            [("vary", "accept"), ("vary", "accept-encoding"), ("set-cookie", "a=1"), ("set-cookie", "b=2")]
        {
            headers.append(name, HeaderValue::from_static(value));
        }
        let mut response = Response::new(Body::empty());
        *response.headers_mut() = headers;
        let headers = joined(response).await.headers().clone();
        assert_eq!(headers.get_all("vary").iter().collect::<Vec<_>>(), ["accept, accept-encoding"]);
        assert_eq!(headers.get_all(SET_COOKIE).iter().count(), 2);
    }
}
