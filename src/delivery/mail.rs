//! Mail: the recipients of a `mailto:` URL, and attempts by SMTP through the server of the configuration. That server's
//! address is the operator's, so the guard does not apply to it.

use std::time::{Duration, Instant};

use lettre::message::header::{ContentType, HeaderName, HeaderValue};
use lettre::message::{Mailbox, Message};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use lettre::{Address, AsyncSmtpTransport, AsyncTransport, Tokio1Executor};
use tokio::time::timeout;

use super::transport::{AttemptFuture, Outcome, Request, Transport};

/// The scheme of a URL with recipients.
pub const MAILTO: &str = "mailto:";

type Mailer = AsyncSmtpTransport<Tokio1Executor>;

/// The server that takes mail.
pub struct MailServer {
    pub host: String,
    pub port: u16,
    pub encryption: MailEncryption,
    /// User name and password, if it asks for them.
    pub credentials: Option<(String, String)>,
    /// The sender of all mail.
    pub from: Mailbox,
}

/// How connections to the mail server are encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MailEncryption {
    /// By STARTTLS (RFC 3207); without it nothing is sent.
    StartTls,
    /// From the beginning (RFC 8314).
    Tls,
    None,
}

/// The addresses of a URL (RFC 6068): one or more by comma, and nothing else.
///
/// # Errors
/// Says what the URL must be.
pub fn recipients(url: &str) -> Result<Vec<Address>, String> {
    let expected = || {
        "must be mailto: with one or more addresses by comma, such as mailto:ops@example.com, and nothing else"
            .to_owned()
    };
    let addresses = url.strip_prefix(MAILTO).ok_or_else(expected)?;
    if addresses.contains(['?', '%', '#']) {
        return Err(expected());
    }
    let parsed = addresses.split(',').map(|address| address.parse::<Address>());
    parsed.collect::<Result<_, _>>().map_err(|_| expected())
}

/// Attempts by mail.
#[derive(Clone)]
pub struct MailTransport {
    /// How to send, and from whom; why not if mail cannot be sent.
    server: Result<(Mailer, Mailbox), String>,
    timeout: Duration,
}

impl MailTransport {
    /// A transport to the mail server, if there is one. `timeout` is for a whole attempt.
    pub fn new(server: Option<MailServer>, timeout: Duration) -> Self {
        let missing = || Err("this server has no mail server: smtp.host is not set".to_owned());
        Self {
            server: server.map_or_else(missing, |server| mailer(server, timeout)),
            timeout,
        }
    }
}

fn mailer(server: MailServer, timeout: Duration) -> Result<(Mailer, Mailbox), String> {
    let parameters = || {
        let parameters = TlsParameters::new(server.host.clone());
        parameters.map_err(|error| format!("no TLS with smtp.host is possible: {error}"))
    };
    let tls = match server.encryption {
        MailEncryption::StartTls => Tls::Required(parameters()?),
        MailEncryption::Tls => Tls::Wrapper(parameters()?),
        MailEncryption::None => Tls::None,
    };
    let domain = server.from.email.domain().to_owned();
    let mut builder = Mailer::builder_dangerous(&server.host)
        .port(server.port)
        .tls(tls)
        .timeout(Some(timeout))
        .hello_name(ClientId::Domain(domain));
    if let Some((username, password)) = server.credentials {
        builder = builder.credentials(Credentials::new(username, password));
    }
    Ok((builder.build(), server.from))
}

impl Transport for MailTransport {
    fn attempt(&self, request: Request) -> AttemptFuture {
        let transport = self.clone();
        Box::pin(async move {
            let began = Instant::now();
            let answer = match timeout(transport.timeout, transport.send(&request)).await {
                Ok(answer) => answer,
                Err(_) => Err(format!(
                    "timed out: the mail server did not take it within {:?}",
                    transport.timeout
                )),
            };
            Outcome {
                answer,
                took: began.elapsed(),
            }
        })
    }
}

impl MailTransport {
    /// Sends a mail; returns the reply code of the server.
    async fn send(&self, request: &Request) -> Result<u16, String> {
        let (mailer, from) = self.server.as_ref().map_err(Clone::clone)?;
        let mail = mail(from, request)?;
        match mailer.send(mail).await {
            Ok(response) => Ok(response.code().into()),
            Err(error) => match error.status() {
                Some(code) => Ok(code.into()),
                None => Err(format!("the mail server did not take it: {error}")),
            },
        }
    }
}

/// The mail of a request: its body as text, its header `subject`, and all other headers under their names.
fn mail(from: &Mailbox, request: &Request) -> Result<Message, String> {
    let mut builder = Message::builder().from(from.clone()).date_now();
    for address in recipients(&request.url)? {
        builder = builder.to(Mailbox::new(None, address));
    }
    let header = |name: &str| {
        let mut headers = request.headers.iter();
        headers
            .find(|(header, _)| *header == name)
            .map(|(_, value)| one_line(value))
    };
    let id = header("x-webhook-id").unwrap_or_default();
    let text =
        std::str::from_utf8(&request.body).map_err(|error| format!("the text is not UTF-8: {error}"))?;
    // The same in each attempt, so that a mail that arrives twice is recognized (RFC 5322, section 3.6.4).
    let message_id = format!("<{id}@{}>", from.email.domain());
    let mail = builder
        .subject(header("subject").unwrap_or_default())
        .message_id(Some(message_id))
        .header(ContentType::TEXT_PLAIN)
        .body(text.to_owned());
    let mut mail = mail.map_err(|error| format!("no mail can be made of it: {error}"))?;
    // RFC 3834: no vacation notices in return.
    for (name, value) in [
        ("X-Webhook-Id", id),
        ("Auto-Submitted", "auto-generated".to_owned()),
    ] {
        let name = HeaderName::new_from_ascii_str(name);
        mail.headers_mut().insert_raw(HeaderValue::new(name, value));
    }
    Ok(mail)
}

/// A text that cannot begin another header.
fn one_line(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_addresses_and_nothing_else() {
        let found = |url: &str| -> Option<Vec<String>> {
            let addresses = recipients(url).ok()?;
            Some(addresses.iter().map(ToString::to_string).collect())
        };
        assert_eq!(found("mailto:a@example.com").unwrap(), ["a@example.com"]);
        assert_eq!(
            found("mailto:a@b.example,c+d@e.example").unwrap(),
            ["a@b.example", "c+d@e.example"]
        );
        for wrong in [
            "a@example.com",
            "mailto:",
            "mailto:a",
            "mailto:a@example.com,",
            "mailto:a@example.com?subject=x",
            "mailto:a@example.com#x",
            "mailto:a%40example.com",
            "mailto:a@example.com, b@example.com",
            "mailto:a@example.com\r\nBcc: b@example.com",
            "mailto:<a@example.com>",
            "https://example.com",
        ] {
            assert_eq!(found(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn nothing_of_a_name_becomes_a_header() {
        let request = Request {
            url: "mailto:a@example.com".to_owned(),
            content_type: "text/plain; charset=utf-8",
            headers: vec![
                ("subject", "pump\r\nBcc: b@example.com\r\n\r\nhello".to_owned()),
                ("x-webhook-id", "0123".to_owned()),
            ],
            body: b"pump\r\n.\r\nQUIT".to_vec().into(),
        };
        let from = "tidewatch <alerts@example.org>".parse().unwrap();
        let mail = String::from_utf8(mail(&from, &request).unwrap().formatted()).unwrap();
        let (head, _) = mail.split_once("\r\n\r\n").unwrap();
        let names: Vec<&str> = head
            .lines()
            .filter_map(|line| line.split_once(": "))
            .map(|(name, _)| name)
            .collect();
        assert!(!names.contains(&"Bcc"), "{head}");
        assert!(
            head.contains("Subject: pump  Bcc: b@example.com    hello"),
            "{head}"
        );
        assert!(head.contains("Message-ID: <0123@example.org>"), "{head}");
        assert!(head.contains("X-Webhook-Id: 0123"), "{head}");
        assert!(head.contains("Auto-Submitted: auto-generated"), "{head}");
    }
}
