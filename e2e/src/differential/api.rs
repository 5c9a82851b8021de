//! The API server, asked in plain JSON: what it stores is what both schedulers see, unknown fields
//! included.

use http::{Method, Request};
use kube::Client;
use serde_json::{Value, json};

use crate::error::{Doing as _, Error, Result};

/// A client with every right.
#[derive(Clone)]
pub(super) struct Api {
    client: Client,
}

impl Api {
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// Creates an object in a collection and returns it as it was stored.
    pub async fn create(&self, collection: &str, object: &Value) -> Result<Value> {
        self.call(Method::POST, collection, "application/json", object).await
    }

    /// The same; one that is there already is fine.
    pub async fn ensure(&self, collection: &str, object: &Value) -> Result<()> {
        match self.create(collection, object).await {
            Err(problem) if problem.api_code() == Some(409) => Ok(()),
            outcome => outcome.map(drop),
        }
    }

    pub async fn merge(&self, path: &str, changes: &Value) -> Result<Value> {
        self.call(Method::PATCH, path, "application/merge-patch+json", changes).await
    }

    pub async fn get(&self, path: &str) -> Result<Value> {
        self.call(Method::GET, path, "application/json", &Value::Null).await
    }

    /// Deletes an object, or all objects of a collection. What is gone already is fine.
    pub async fn delete(&self, path: &str, grace_seconds: u32) -> Result<()> {
        let options =
            json!({"gracePeriodSeconds": grace_seconds, "propagationPolicy": "Background"});
        match self.call(Method::DELETE, path, "application/json", &options).await {
            Err(problem) if problem.api_code() == Some(404) => Ok(()),
            outcome => outcome.map(drop),
        }
    }

    async fn call(&self, method: Method, path: &str, content: &str, body: &Value) -> Result<Value> {
        let doing = || format!("{method} {path} {body}");
        let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = Request::builder()
            .method(method.clone())
            .uri(format!("/{path}"))
            .header("Content-Type", content)
            .body(bytes)
            .map_err(|problem| Error::malformed(doing(), problem))?;
        self.client.request(request).await.doing(doing())
    }
}
