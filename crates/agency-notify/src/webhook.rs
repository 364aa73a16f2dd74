//! Posts a notification to the user's webhook.
//!
//! The address may contain a secret in its path, its query or before its host. Messages show only scheme, host and port.

use std::sync::Arc;
use std::time::Duration;

use ureq::config::Config;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Error};

const TIMEOUT: Duration = Duration::from_secs(5);

pub async fn post(address: String, json: Vec<u8>) -> Result<(), String> {
    // The lookup of the host and the reading of certificates block, at most as long as the timeout.
    let posted = tokio::task::spawn_blocking(move || post_now(&address, &json));
    posted.await.unwrap_or_else(|err| Err(err.to_string()))
}

fn post_now(address: &str, json: &[u8]) -> Result<(), String> {
    let agent = Agent::new_with_config(config(address.starts_with("https:")));
    let answer = agent
        .post(address)
        .content_type("application/json")
        .send(json)
        .map_err(|err| describe_error(&err))?;
    match answer.status().as_u16() {
        200..300 => Ok(()),
        status @ 300..400 => Err(format!("it answered {status}, and redirects are not followed")),
        status => Err(format!("it answered {status}")),
    }
}

fn config(secure: bool) -> Config {
    let config = Agent::config_builder()
        .timeout_global(Some(TIMEOUT))
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .user_agent(concat!("agency/", env!("CARGO_PKG_VERSION")));
    match secure {
        true => config.tls_config(tls()).build(),
        false => config.build(),
    }
}

/// Uses the certificates that the system trusts, so the user's own certificate authority works too.
fn tls() -> TlsConfig {
    let system = rustls_native_certs::load_native_certs();
    let roots = system.certs.iter().map(|root| Certificate::from_der(root.as_ref()).to_owned()).collect();
    TlsConfig::builder()
        .root_certs(RootCerts::Specific(Arc::new(roots)))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build()
}

/// Describes the error without the address, which may contain a secret.
fn describe_error(error: &Error) -> String {
    match error {
        Error::Timeout(_) => format!("no answer within {} s", TIMEOUT.as_secs()),
        Error::HostNotFound => "there is no such host".to_owned(),
        Error::ConnectionFailed => "cannot connect to it".to_owned(),
        Error::Io(cause) => cause.to_string(),
        Error::Rustls(cause) => cause.to_string(),
        Error::Tls(cause) => (*cause).to_owned(),
        Error::BadUri(_) | Error::Http(_) => "the address cannot be used".to_owned(),
        _ => "the request could not be sent".to_owned(),
    }
}

/// Returns `https://host:port`, without the parts that may be secret.
pub fn origin(address: &str) -> String {
    let (scheme, rest) = address.split_once("://").unwrap_or(("", address));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    format!("{scheme}://{}", super::words::clean(authority.rsplit('@').next().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    /// Answers one request with `answer`, and returns the request.
    fn serve_once(answer: &'static str) -> (u16, std::thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let served = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"{}") {
                let mut piece = [0; 4096];
                let read = stream.read(&mut piece).unwrap();
                assert!(read > 0, "the request is cut off");
                request.extend_from_slice(&piece[..read]);
            }
            stream.write_all(answer.as_bytes()).unwrap();
            String::from_utf8(request).unwrap()
        });
        (port, served)
    }

    #[tokio::test]
    async fn the_webhook_gets_json_and_a_status_other_than_2xx_is_a_failure() {
        let (port, served) = serve_once("HTTP/1.1 204 No Content\r\n\r\n");
        post(format!("http://me:secret@127.0.0.1:{port}/hook?key=1"), b"{}".to_vec()).await.unwrap();
        let request = served.join().unwrap().to_lowercase();
        assert!(request.starts_with("post /hook?key=1 http/1.1\r\n"), "{request}");
        assert!(request.contains("content-type: application/json\r\n"), "{request}");
        assert!(request.contains("authorization: basic bwu6c2vjcmv0\r\n"), "{request}");

        let (port, served) = serve_once("HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n");
        let refused = post(format!("http://127.0.0.1:{port}/"), b"{}".to_vec()).await;
        assert_eq!(refused, Err("it answered 500".to_owned()));
        served.join().unwrap();
    }

    #[tokio::test]
    async fn a_redirect_is_not_followed() {
        let (port, served) =
            serve_once("HTTP/1.1 307 Go\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n");
        let refused =
            post(format!("http://127.0.0.1:{port}/"), b"{}".to_vec()).await.expect_err("a redirect");
        assert!(refused.starts_with("it answered 307"), "{refused}");
        served.join().unwrap();
    }

    #[tokio::test]
    async fn an_error_does_not_show_the_address() {
        let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        for address in [
            format!("http://127.0.0.1:{gone}/secret"),
            format!("https://127.0.0.1:{gone}/secret"),
            "http://127.0.0.1:1:1/secret".to_owned(),
        ] {
            let refused = post(address, b"{}".to_vec()).await.expect_err("no server");
            assert!(!refused.contains("secret"), "{refused}");
        }
        assert_eq!(origin("https://me:secret@h:8080/secret?secret#secret"), "https://h:8080");
        assert_eq!(origin("http://h?secret"), "http://h");
    }
}
