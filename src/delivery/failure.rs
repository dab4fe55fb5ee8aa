//! Why an attempt failed, in words that whoever runs the receiver can act on.

use std::error::Error;
use std::io::{self, ErrorKind};

use awc::error::{ConnectError, SendRequestError};
use rustls::{AlertDescription, CertificateError};

/// Whether the failure came before anything was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotConnected(pub bool);

/// What an answer without success means.
pub(super) fn refused(status: u16) -> String {
    match status {
        300..=399 => {
            format!("the receiver answered {status}: redirects are not followed, set the URL it points to")
        }
        _ => format!("the receiver answered {status}"),
    }
}

/// Why there was no answer.
pub(super) fn unreachable(error: &SendRequestError) -> (String, NotConnected) {
    let text = match error {
        SendRequestError::Connect(ConnectError::Io(error)) => return (connecting(error), NotConnected(true)),
        SendRequestError::Connect(ConnectError::Timeout) => {
            return (
                String::from("timed out: no connection to the receiver"),
                NotConnected(true),
            );
        }
        // Between connecting and the answer's head.
        SendRequestError::Connect(ConnectError::Disconnected) => {
            String::from("the receiver closed the connection without an answer")
        }
        SendRequestError::Send(error) => format!("the connection broke: {error}"),
        SendRequestError::Response(error) => format!("the answer is not HTTP: {error}"),
        error => error.to_string(),
    };
    (text, NotConnected(false))
}

fn connecting(error: &io::Error) -> String {
    if let Some(error) = error.get_ref().and_then(tls) {
        return match error {
            rustls::Error::InvalidCertificate(error) => {
                format!("the certificate is not valid: {}", certificate(error))
            }
            rustls::Error::AlertReceived(alert) => {
                format!("the receiver refused TLS: {}", alert_name(*alert))
            }
            error => format!("no TLS with the receiver: {error}"),
        };
    }
    match error.kind() {
        ErrorKind::ConnectionRefused => String::from("connection refused: nothing listens at the URL's port"),
        ErrorKind::ConnectionReset => String::from("connection reset by the receiver"),
        ErrorKind::UnexpectedEof => {
            String::from("the receiver closed the connection during the TLS handshake")
        }
        ErrorKind::TimedOut => String::from("timed out: no connection to the receiver"),
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => {
            format!("no route to the receiver: {error}")
        }
        _ => format!("no connection to the receiver: {error}"),
    }
}

fn tls<'e>(error: &'e (dyn Error + Send + Sync + 'static)) -> Option<&'e rustls::Error> {
    error.downcast_ref()
}

fn certificate(error: &CertificateError) -> String {
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => String::from("it has expired"),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            String::from("it is not valid yet")
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            String::from("it is for another name")
        }
        CertificateError::UnknownIssuer => String::from("its issuer is not a public authority"),
        error => error.to_string(),
    }
}

fn alert_name(alert: AlertDescription) -> String {
    format!("{alert:?}")
}
