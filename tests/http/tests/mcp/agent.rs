//! An agent: sends messages and reads what tools answer.

use callboard_test_support::{Answer, Client};
use reqwest::Method;
use serde_json::{Value, json};

/// One caller of the endpoint.
#[derive(Debug, Clone)]
pub(crate) struct Agent(pub Client, &'static str);

impl Agent {
    /// A caller who uses this address of the endpoint, query included.
    pub(crate) const fn at(client: Client, path: &'static str) -> Self {
        Self(client, path)
    }

    /// The answer to a body, with more headers.
    pub(crate) async fn post(&self, headers: &[(&str, &str)], body: &str) -> Answer {
        let request = self.0.request(Method::POST, self.1).header("content-type", "application/json");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        Answer::send(request.body(body.to_owned())).await.expect("an answer")
    }

    /// The answer to one request message.
    pub(crate) async fn request(&self, method: &str, params: Value) -> Value {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let answer = self.post(&[], &message.to_string()).await;
        assert_eq!(answer.status, 200, "{method}: {}", answer.text());
        answer.json().expect("JSON")
    }

    /// What a tool answers, or the text of its error.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Result<Value, String> {
        let answer = self.request("tools/call", json!({"name": tool, "arguments": arguments})).await;
        assert!(answer.get("error").is_none(), "{tool} {arguments}: {answer}");
        let text = answer["result"]["content"][0]["text"].as_str().expect("a text").to_owned();
        if answer["result"]["isError"] == json!(true) {
            let sentence = text.strip_prefix("Error: ").unwrap_or_else(|| panic!("{tool}: {text}"));
            return Err(sentence.to_owned());
        }
        Ok(serde_json::from_str(&text).expect("JSON"))
    }

    /// Every tool as it is listed.
    pub(crate) async fn tools(&self) -> Vec<Value> {
        let answer = self.request("tools/list", json!({})).await;
        answer["result"]["tools"].as_array().expect("tools").clone()
    }
}
