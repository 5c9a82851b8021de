//! Asks a scheduler. How bytes get there (loopback, HTTPS with the user's token, a port-forward) is the
//! transport's concern.

use http::{Method, Request, Response, StatusCode};
use serde::de::DeserializeOwned;

use crate::{Estimate, Explanation, Failure, Shadow};

/// Sends one request. The URI has a path only.
pub trait Transport {
    type Error: std::error::Error + Send + Sync + 'static;

    fn send(
        &self,
        request: Request<Vec<u8>>,
    ) -> impl Future<Output = Result<Response<Vec<u8>>, Self::Error>> + Send;
}

#[derive(Debug, thiserror::Error)]
pub enum ClientError<E> {
    #[error("the scheduler cannot be reached: {0}")]
    Transport(E),
    /// The scheduler answered, and not with success.
    #[error("{} ({code})", failure.error)]
    Refused { code: StatusCode, failure: Failure },
    #[error("the answer is not of this API: {0}")]
    Unreadable(serde_json::Error),
    #[error("{0:?} is no name of a namespace or Pod")]
    Name(String),
}

#[derive(Clone, Debug)]
pub struct Client<T> {
    transport: T,
}

impl<T: Transport> Client<T> {
    pub fn new(transport: T) -> Self {
        Self { transport }
    }

    /// # Errors
    /// When it cannot be asked, or does not know the Pod.
    pub async fn explain(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Explanation, ClientError<T::Error>> {
        self.get(&pod_path(namespace, name, "explain")?).await
    }

    /// # Errors
    /// When it cannot be asked, or does not know the Pod.
    pub async fn when(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Estimate, ClientError<T::Error>> {
        self.get(&pod_path(namespace, name, "when")?).await
    }

    /// `pod`: a Pod as JSON.
    ///
    /// # Errors
    /// When it cannot be asked, or the body is not a Pod.
    pub async fn what_if(&self, pod: Vec<u8>) -> Result<Explanation, ClientError<T::Error>> {
        self.call(Method::POST, "/api/what-if", pod).await
    }

    /// # Errors
    /// When it cannot be asked, or compares nothing.
    pub async fn shadow(&self) -> Result<Shadow, ClientError<T::Error>> {
        self.get("/api/shadow").await
    }

    async fn get<A: DeserializeOwned>(&self, path: &str) -> Result<A, ClientError<T::Error>> {
        self.call(Method::GET, path, Vec::new()).await
    }

    async fn call<A: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
    ) -> Result<A, ClientError<T::Error>> {
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().map_err(|_| ClientError::Name(path.to_owned()))?;
        let response = self.transport.send(request).await.map_err(ClientError::Transport)?;
        let (head, body) = response.into_parts();
        if head.status.is_success() {
            return serde_json::from_slice(&body).map_err(ClientError::Unreadable);
        }
        // A proxy in between answers in its own words.
        let failure = serde_json::from_slice(&body).unwrap_or_else(|_| Failure {
            error: String::from_utf8_lossy(&body).trim().to_owned(),
            leader: None,
        });
        Err(ClientError::Refused { code: head.status, failure })
    }
}

fn pod_path<E>(namespace: &str, name: &str, question: &str) -> Result<String, ClientError<E>> {
    for part in [namespace, name] {
        // Names of Kubernetes need no escaping; what would is none.
        let is_name = !part.is_empty()
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.'));
        if !is_name {
            return Err(ClientError::Name(part.to_owned()));
        }
    }
    Ok(format!("/api/pods/{namespace}/{name}/{question}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;
    use std::sync::Mutex;

    /// Answers with one response, and keeps what it was asked.
    struct Canned(StatusCode, &'static str, Mutex<Vec<String>>);

    impl Transport for &Canned {
        type Error = Infallible;

        async fn send(&self, request: Request<Vec<u8>>) -> Result<Response<Vec<u8>>, Infallible> {
            self.2.lock().unwrap().push(format!("{} {}", request.method(), request.uri()));
            let mut response = Response::new(self.1.as_bytes().to_vec());
            *response.status_mut() = self.0;
            Ok(response)
        }
    }

    fn canned(code: u16, body: &'static str) -> Canned {
        Canned(StatusCode::from_u16(code).unwrap(), body, Mutex::default())
    }

    #[tokio::test]
    async fn answers_are_read_as_types_and_unknown_fields_are_ignored() {
        let server =
            canned(200, r#"{"earliest":null,"basis":["x"],"confidence":"partial","addedLater":1}"#);
        let estimate = Client::new(&server).when("team-a", "p-1").await.unwrap();
        assert_eq!((estimate.earliest, estimate.confidence), (None, crate::Confidence::Partial));
        assert_eq!(*server.2.lock().unwrap(), ["GET /api/pods/team-a/p-1/when"]);
    }

    #[tokio::test]
    async fn a_refusal_has_the_words_of_whoever_refused() {
        let follower = canned(503, r#"{"error":"this replica follows","leader":"b_1"}"#);
        let error = Client::new(&follower).shadow().await.unwrap_err();
        assert_eq!(error.to_string(), "this replica follows (503 Service Unavailable)");
        let ClientError::Refused { failure, .. } = error else { unreachable!("it was refused") };
        assert_eq!(failure.leader.as_deref(), Some("b_1"));
        let proxy = canned(502, "bad gateway\n");
        let error = Client::new(&proxy).shadow().await.unwrap_err();
        assert_eq!(error.to_string(), "bad gateway (502 Bad Gateway)");
    }

    #[tokio::test]
    async fn a_name_cannot_change_the_path() {
        let server = canned(200, "{}");
        for name in ["", "../x", "a/b", "a?b", "a b"] {
            let error = Client::new(&server).explain("team-a", name).await.unwrap_err();
            assert!(matches!(error, ClientError::Name(_)), "{name}: {error}");
        }
        assert!(server.2.lock().unwrap().is_empty());
    }
}
