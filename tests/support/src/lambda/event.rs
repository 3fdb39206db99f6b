//! Requests as events of what may stand in front of a function, and answers back.
//!
//! Where it is odd, so is this. An HTTP API (payload format 2.0) decodes the path
//! and cuts it at a decoded question mark, joins repeated headers and query
//! parameters with commas, moves cookies to a field of their own, and sends every
//! body that is not one of four text types as base64. A REST API and a load
//! balancer leave the path as it is and keep what is repeated; a REST API decodes
//! query parameters and names its stage beside the path, a load balancer decodes
//! nothing.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use base64ct::{Base64, Encoding};
use bytes::Bytes;
use http::header::{
    CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HOST, HeaderMap, HeaderName, HeaderValue, SET_COOKIE, USER_AGENT,
};
use http::{Method, Request, StatusCode};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use crate::Answer;

/// The gateway's own name, when a request names none.
pub(super) const HOST_NAME: &str = "callboard.execute-api.eu-central-1.amazonaws.com";

/// Where a request comes from, as an extension of it: the address at the other
/// end of the connection to the gateway.
#[derive(Debug, Clone, Copy)]
pub struct SourceIp(pub &'static str);

/// Where a request comes from that does not say.
const SOMEWHERE: SourceIp = SourceIp("203.0.113.7");

/// What stands in front of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Gateway {
    /// An HTTP API of API Gateway.
    #[default]
    HttpApi,
    /// A REST API of API Gateway that takes every body as binary, with the stage `prod`.
    RestApi,
    /// An Application Load Balancer whose target group keeps repeated headers.
    LoadBalancer,
}

impl Gateway {
    /// The event of a request on a route.
    pub(super) fn event(self, route_key: &str, request: &Request<Bytes>) -> Result<Value> {
        match self {
            Self::HttpApi => of_request(route_key, request),
            Self::RestApi | Self::LoadBalancer => self.proxied(request),
        }
    }

    /// Largest body of an event and of an answer, and the largest of either as a whole.
    pub(super) const fn max_payload_bytes(self) -> usize {
        match self {
            Self::HttpApi | Self::RestApi => 6 * 1024 * 1024,
            Self::LoadBalancer => 1024 * 1024,
        }
    }

    fn proxied(self, request: &Request<Bytes>) -> Result<Value> {
        let path = request.uri().path();
        let SourceIp(source) = request.extensions().get().copied().unwrap_or(SOMEWHERE);
        let mut headers: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, value) in request.headers() {
            let value = value.to_str().with_context(|| format!("the header {name} is not text"))?;
            headers.entry(name.to_string()).or_default().push(value.to_owned());
        }
        let host = headers.entry(HOST.to_string()).or_insert_with(|| vec![HOST_NAME.to_owned()])[0].clone();
        headers.entry("x-forwarded-for".to_owned()).or_default().push(source.to_owned());
        headers.insert("x-forwarded-proto".to_owned(), vec!["https".to_owned()]);
        let mut query: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let sent = request.uri().query().unwrap_or_default();
        if self == Self::RestApi {
            for (name, value) in url::form_urlencoded::parse(sent.as_bytes()) {
                query.entry(name.into_owned()).or_default().push(value.into_owned());
            }
        } else {
            for pair in sent.split('&').filter(|pair| !pair.is_empty()) {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                query.entry(name.to_owned()).or_default().push(value.to_owned());
            }
        }
        let is_text = self == Self::LoadBalancer && is_text(request.headers());
        let body = match (request.body().is_empty(), is_text) {
            (true, _) => Value::Null,
            (false, true) => json!(String::from_utf8_lossy(request.body())),
            (false, false) => json!(Base64::encode_string(request.body())),
        };
        let context = match self {
            Self::LoadBalancer => {
                let group = "arn:aws:elasticloadbalancing:eu-central-1:123456789012:targetgroup/callboard/6d0ecf831eec9f09";
                json!({ "elb": { "targetGroupArn": group } })
            }
            _ => json!({
                "accountId": "123456789012",
                "apiId": "callboard",
                "domainName": host,
                "domainPrefix": "callboard",
                "httpMethod": request.method().as_str(),
                "identity": { "sourceIp": source, "userAgent": headers.get(USER_AGENT.as_str()) .map(|values| &values[0]) },
                "path": format!("/prod{path}"),
                "protocol": "HTTP/1.1",
                "requestId": "c6af9ac6-7b61-11e6-9a41-93e8deadbeef",
                "requestTimeEpoch": 1_767_268_800_000_u64,
                "resourceId": "123456",
                "resourcePath": "/{proxy+}",
                "stage": "prod",
            }),
        };
        let last = |values: &BTreeMap<String, Vec<String>>| -> BTreeMap<String, String> {
            values.iter().filter_map(|(name, values)| Some((name.clone(), values.last()?.clone()))).collect()
        };
        let mut event = json!({
            "httpMethod": request.method().as_str(),
            "path": path,
            "multiValueHeaders": headers,
            "multiValueQueryStringParameters": query,
            "requestContext": context,
            "body": body,
            "isBase64Encoded": !is_text && !request.body().is_empty(),
        });
        if self == Self::RestApi {
            event["resource"] = json!("/{proxy+}");
            event["headers"] = json!(last(&headers));
            event["queryStringParameters"] = json!(last(&query));
            event["pathParameters"] = json!({ "proxy": path.trim_start_matches('/') });
            event["stageVariables"] = Value::Null;
        }
        Ok(event)
    }

    /// The answer a client gets of what a function returned.
    pub(super) fn answer(self, payload: &[u8], method: &Method) -> Result<Answer> {
        let answer: Value = serde_json::from_slice(payload)?;
        let mut headers = HeaderMap::new();
        if self == Self::HttpApi {
            for (name, value) in answer["headers"].as_object().into_iter().flatten() {
                let value = value.as_str().with_context(|| format!("the header {name} is not text"))?;
                headers.insert(HeaderName::try_from(name.as_str())?, HeaderValue::from_str(value)?);
            }
            ensure!(!headers.contains_key(SET_COOKIE), "cookies belong into the field cookies");
            for cookie in answer["cookies"].as_array().into_iter().flatten() {
                headers.append(SET_COOKIE, HeaderValue::from_str(cookie.as_str().unwrap_or_default())?);
            }
        } else {
            for (name, values) in answer["multiValueHeaders"].as_object().into_iter().flatten() {
                for value in values.as_array().into_iter().flatten() {
                    let value = value.as_str().with_context(|| format!("the header {name} is not text"))?;
                    headers.append(HeaderName::try_from(name.as_str())?, HeaderValue::from_str(value)?);
                }
            }
        }
        into_answer(&answer, headers, method)
    }
}

/// The event of an HTTP API.
fn of_request(route_key: &str, request: &Request<Bytes>) -> Result<Value> {
    let decoded = percent_decode_str(request.uri().path()).decode_utf8_lossy();
    let path = decoded.split('?').next().unwrap_or_default();
    let query = request.uri().query().unwrap_or_default();
    let mut headers = joined(request.headers())?;
    headers.remove(COOKIE.as_str());
    let host = headers.entry(HOST.to_string()).or_insert_with(|| HOST_NAME.to_owned()).clone();
    if !request.body().is_empty() {
        headers.insert(CONTENT_LENGTH.to_string(), request.body().len().to_string());
    }
    let SourceIp(source) = request.extensions().get().copied().unwrap_or(SOMEWHERE);
    // What the client says is kept, and followed by what the gateway saw.
    let forwarded_for = match headers.get("x-forwarded-for") {
        Some(said) => format!("{said},{source}"),
        None => source.to_owned(),
    };
    for (name, value) in [
        ("x-forwarded-for", forwarded_for.as_str()),
        ("x-forwarded-port", "443"),
        ("x-forwarded-proto", "https"),
    ] {
        headers.insert(name.to_owned(), value.to_owned());
    }
    let mut event = json!({
        "version": "2.0",
        "routeKey": route_key,
        "rawPath": path,
        "rawQueryString": query,
        "headers": headers,
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "callboard",
            "domainName": host,
            "domainPrefix": "callboard",
            "http": {
                "method": request.method().as_str(),
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": source,
                "userAgent": headers.get(USER_AGENT.as_str()).cloned().unwrap_or_default(),
            },
            "requestId": "JKJaXmPLvHcESHA=",
            "routeKey": route_key,
            "stage": "$default",
            "time": "01/Jan/2026:12:00:00 +0000",
            "timeEpoch": 1_767_268_800_000_u64,
        },
        "isBase64Encoded": false,
    });
    let cookies: Vec<&str> = request
        .headers()
        .get_all(COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split("; "))
        .collect();
    if !cookies.is_empty() {
        event["cookies"] = json!(cookies);
    }
    if !query.is_empty() {
        event["queryStringParameters"] = json!(joined_query(query));
    }
    if !request.body().is_empty() {
        let is_text = is_text(request.headers());
        event["isBase64Encoded"] = json!(!is_text);
        event["body"] = if is_text {
            json!(String::from_utf8_lossy(request.body()))
        } else {
            json!(Base64::encode_string(request.body()))
        };
    }
    Ok(event)
}

fn is_text(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind.starts_with("text/")
        || matches!(kind.as_str(), "application/json" | "application/xml" | "application/javascript")
}

fn joined(headers: &HeaderMap) -> Result<BTreeMap<String, String>> {
    let mut joined: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in headers {
        let value = value.to_str().with_context(|| format!("the header {name} is not text"))?;
        joined
            .entry(name.to_string())
            .and_modify(|so_far| {
                so_far.push(',');
                so_far.push_str(value);
            })
            .or_insert_with(|| value.to_owned());
    }
    Ok(joined)
}

fn joined_query(query: &str) -> BTreeMap<String, String> {
    let mut joined: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        joined
            .entry(name.into_owned())
            .and_modify(|so_far| {
                so_far.push(',');
                so_far.push_str(&value);
            })
            .or_insert_with(|| value.into_owned());
    }
    joined
}

fn into_answer(answer: &Value, headers: HeaderMap, method: &Method) -> Result<Answer> {
    let status = answer["statusCode"].as_u64().context("no statusCode")?;
    let body = match (&answer["body"], answer["isBase64Encoded"].as_bool()) {
        (Value::Null, _) => Bytes::new(),
        (Value::String(text), Some(true)) => Bytes::from(
            Base64::decode_vec(text).map_err(|error| anyhow::anyhow!("the body is not base64: {error}"))?,
        ),
        (Value::String(text), _) => Bytes::from(text.clone()),
        (other, _) => anyhow::bail!("the body is {other}"),
    };
    let body = if method == Method::HEAD { Bytes::new() } else { body };
    Ok(Answer { status: StatusCode::from_u16(u16::try_from(status)?)?, headers, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(uri: &str, kind: &str, body: &'static [u8]) -> Request<Bytes> {
        Request::post(uri)
            .header(CONTENT_TYPE, kind)
            .header(COOKIE, "a=1; b=2")
            .header("x-twice", "1")
            .header("x-twice", "2")
            .body(Bytes::from_static(body))
            .unwrap()
    }

    #[test]
    fn a_request_becomes_the_event_the_gateway_would_send() {
        let event = of_request(
            "ANY /api/files/{proxy+}",
            &request("/api/files/a%20b.txt?x=1&x=2&y=%20", "application/json", b"{}"),
        )
        .unwrap();
        assert_eq!(event["rawPath"], "/api/files/a b.txt");
        assert_eq!(event["rawQueryString"], "x=1&x=2&y=%20");
        assert_eq!(event["queryStringParameters"], json!({"x": "1,2", "y": " "}));
        assert_eq!(event["cookies"], json!(["a=1", "b=2"]));
        assert_eq!(event["headers"]["x-twice"], "1,2");
        assert!(event["headers"].get("cookie").is_none());
        assert_eq!(event["requestContext"]["http"]["method"], "POST");
        assert_eq!((&event["body"], &event["isBase64Encoded"]), (&json!("{}"), &json!(false)));
    }

    #[test]
    fn bodies_that_are_not_text_travel_as_base64() {
        let event =
            of_request("$default", &request("/", "multipart/form-data; boundary=x", b"\xff\x00")).unwrap();
        assert_eq!((&event["body"], &event["isBase64Encoded"]), (&json!("/wA="), &json!(true)));
    }

    #[test]
    fn an_answer_comes_back_with_its_bytes_and_cookies() {
        let payload = br#"{"statusCode":206,"headers":{"etag":"\"x\""},"cookies":["a=1","b=2"],"body":"/wA=","isBase64Encoded":true}"#;
        let answer = Gateway::HttpApi.answer(payload, &Method::GET).unwrap();
        assert_eq!(
            (answer.status.as_u16(), answer.header("etag"), &answer.body[..]),
            (206, "\"x\"", &b"\xff\x00"[..])
        );
        assert_eq!(answer.headers.get_all(SET_COOKIE).iter().count(), 2);
    }
}
