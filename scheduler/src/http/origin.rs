//! Which requests plain HTTP answers: those that were meant for this machine.
//!
//! Plain HTTP on loopback has no users, so a browser on the machine, or at the other end of a port-forward, must
//! not lend its place to a web page. A page reaches loopback in two ways: its own name resolves to 127.0.0.1
//! (DNS rebinding), which `Host` shows; or it asks for a loopback address, which `Origin` and `Sec-Fetch-Site`
//! show. HTTPS needs none of this: a browser adds no bearer token by itself.

use std::net::{IpAddr, Ipv6Addr};

use axum::extract::Request;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::access::OPEN_PATHS;
use super::api::failure;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Why a request is not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ForbiddenRequest {
    /// The request does not name exactly one host.
    NoHost,
    /// It is for another server, by name.
    ForeignHost(String),
    /// A web page sends it.
    CrossSite(String),
}

/// Probes stay open, as they are over HTTPS: they give nothing away.
pub async fn guard(request: Request, next: Next) -> Response {
    if OPEN_PATHS.contains(&request.uri().path()) {
        return next.run(request).await;
    }
    match judge(request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

fn judge(target: &Uri, headers: &HeaderMap) -> Result<(), ForbiddenRequest> {
    let host = host(target, headers)?;
    if !is_loopback(&host) {
        return Err(ForbiddenRequest::ForeignHost(host.to_string()));
    }
    for site in headers.get_all(SEC_FETCH_SITE) {
        // `none`: a person typed the address. `same-site` is another port of the same name.
        if site != "none" && site != "same-origin" {
            return Err(ForbiddenRequest::CrossSite(readable(site)));
        }
    }
    for origin in headers.get_all(header::ORIGIN) {
        let is_own = origin
            .to_str()
            .ok()
            .and_then(|origin| origin.strip_prefix("http://"))
            .is_some_and(|origin| origin.eq_ignore_ascii_case(host.as_str()));
        if !is_own {
            return Err(ForbiddenRequest::CrossSite(readable(origin)));
        }
    }
    Ok(())
}

/// The host that the request is for. The request line may name a host too, and must agree.
fn host(target: &Uri, headers: &HeaderMap) -> Result<Authority, ForbiddenRequest> {
    let mut all = headers.get_all(header::HOST).iter();
    let (Some(value), None) = (all.next(), all.next()) else {
        return Err(ForbiddenRequest::NoHost);
    };
    let host: Authority = match value.to_str().map(str::parse) {
        Ok(Ok(host)) => host,
        _ => return Err(ForbiddenRequest::ForeignHost(readable(value))),
    };
    match target.authority() {
        Some(named) if *named != host => Err(ForbiddenRequest::ForeignHost(named.to_string())),
        _ => Ok(host),
    }
}

/// The port is free: `kubectl port-forward` may listen on any.
fn is_loopback(host: &Authority) -> bool {
    // `user@host` is no name of this machine, whatever follows.
    if host.as_str().contains('@') {
        return false;
    }
    let name = host.host();
    let name = name.strip_suffix('.').unwrap_or(name);
    if name.eq_ignore_ascii_case("localhost") {
        return true;
    }
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    match bare {
        Some(name) => name.parse().is_ok_and(|address: Ipv6Addr| is_loopback_v6(address)),
        None => name.parse().is_ok_and(|address: IpAddr| address.is_loopback()),
    }
}

fn is_loopback_v6(address: Ipv6Addr) -> bool {
    address.is_loopback() || address.to_ipv4_mapped().is_some_and(|mapped| mapped.is_loopback())
}

fn readable(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

impl IntoResponse for ForbiddenRequest {
    fn into_response(self) -> Response {
        let (code, error) = match self {
            Self::NoHost => {
                (StatusCode::BAD_REQUEST, "exactly one Host header is needed".to_owned())
            }
            Self::ForeignHost(host) => {
                let error = format!(
                    "plain HTTP is served to this machine alone, and the request names the host {host:?}: ask \
                     localhost or 127.0.0.1, for instance through `kubectl port-forward`, or use --https"
                );
                (StatusCode::MISDIRECTED_REQUEST, error)
            }
            Self::CrossSite(site) => {
                let error = format!(
                    "a web page of another origin asks ({site}), and pages may not read this: open the \
                     address directly, or ask with curl"
                );
                (StatusCode::FORBIDDEN, error)
            }
        };
        failure(code, error)
    }
}

#[cfg(test)]
mod tests;
