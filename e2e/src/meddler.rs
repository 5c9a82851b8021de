//! A relay before the daemons that changes what they say on the way back: what no honest daemon can
//! be made to say by a fault, such as a reading that is not a number.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::error::{Doing as _, Error, Result};

/// No honest message is longer.
const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// Members and what becomes of their values.
type Rewrite = Arc<Mutex<Vec<(String, String)>>>;

/// A running relay. It stops when it is dropped.
#[derive(Debug)]
pub struct Meddler {
    address: SocketAddr,
    rewrite: Rewrite,
    task: JoinHandle<()>,
}

impl Meddler {
    /// Relays to the daemons on this port of loopback, truthfully at first.
    pub async fn start(daemons_port: u16) -> Result<Self> {
        let doing = "starting a relay before the daemons";
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.doing(doing)?;
        let address = listener.local_addr().doing(doing)?;
        let rewrite = Rewrite::default();
        let task = tokio::spawn(accept(listener, daemons_port, rewrite.clone()));
        Ok(Self { address, rewrite, task })
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// From now on the value of this member of every JSON answer becomes `value`, as it is spelt.
    pub fn rewrite(&self, member: &str, value: &str) {
        let mut rewrite = self.rewrite.lock().unwrap_or_else(PoisonError::into_inner);
        rewrite.push((member.to_owned(), value.to_owned()));
    }

    /// Truthful again.
    pub fn relent(&self) {
        self.rewrite.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Drop for Meddler {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, daemons_port: u16, rewrite: Rewrite) {
    // Connections end with their client, which ends with the test.
    while let Ok((client, _)) = listener.accept().await {
        let rewrite = rewrite.clone();
        tokio::spawn(async move {
            // A broken connection is the client's to notice.
            let _ = relay(client, daemons_port, &rewrite).await;
        });
    }
}

/// One request for each connection: the answer says so, and the client opens another.
async fn relay(mut client: TcpStream, daemons_port: u16, rewrite: &Rewrite) -> Result<()> {
    let doing = "relaying to the daemons";
    let (head, body) = read_message(&mut client).await?;
    let mut daemons = TcpStream::connect((Ipv4Addr::LOCALHOST, daemons_port)).await.doing(doing)?;
    let head = without_header(&head, "connection");
    let request = format!("{}\r\nconnection: close\r\n\r\n", head.trim_end());
    daemons.write_all(request.as_bytes()).await.doing(doing)?;
    daemons.write_all(&body).await.doing(doing)?;

    let (head, body) = read_message(&mut daemons).await?;
    let mut body = String::from_utf8_lossy(&body).into_owned();
    let orders = rewrite.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for (member, value) in orders {
        body = replaced(&body, &member, &value);
    }
    let head = without_header(&without_header(&head, "content-length"), "connection");
    let answer = format!(
        "{}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        head.trim_end(),
        body.len()
    );
    client.write_all(answer.as_bytes()).await.doing(doing)
}

/// Head without its empty line, and as much body as the head announces.
async fn read_message(from: &mut TcpStream) -> Result<(String, Vec<u8>)> {
    let doing = "reading an HTTP message";
    let mut bytes = Vec::new();
    let end_of_head = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at;
        }
        if from.read_buf(&mut bytes).await.doing(doing)? == 0 || bytes.len() > MESSAGE_BYTES_MAX {
            return Err(Error::malformed(doing, "it has no end"));
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end_of_head]).into_owned();
    let announced = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let mut body = bytes.split_off(end_of_head + 4);
    while body.len() < announced.unwrap_or(0).min(MESSAGE_BYTES_MAX) {
        if from.read_buf(&mut body).await.doing(doing)? == 0 {
            return Err(Error::malformed(doing, "its body is cut off"));
        }
    }
    Ok((head, body))
}

fn without_header(head: &str, name: &str) -> String {
    let is_it = |line: &&str| {
        !line.split_once(':').is_some_and(|(found, _)| found.eq_ignore_ascii_case(name))
    };
    head.lines().filter(is_it).collect::<Vec<_>>().join("\r\n")
}

/// Members are never nested in values here: a value ends at the next comma or brace.
fn replaced(body: &str, member: &str, value: &str) -> String {
    let name = format!("\"{member}\":");
    let mut parts = body.split(&name);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find([',', '}']).unwrap_or(part.len());
        text.push_str(&name);
        text.push_str(value);
        text.push_str(&part[end..]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_of_the_member_is_replaced_and_nothing_else() {
        let body = r#"{"a":[{"gbps":1.5,"other":2},{"gbps":3}],"x":"gbps"}"#;
        let expected = r#"{"a":[{"gbps":"NaN","other":2},{"gbps":"NaN"}],"x":"gbps"}"#;
        assert_eq!(replaced(body, "gbps", "\"NaN\""), expected);
    }

    #[test]
    fn a_header_is_dropped_by_its_name() {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nx: connection";
        assert_eq!(without_header(head, "content-length"), "HTTP/1.1 200 OK\r\nx: connection");
    }
}
