//! Texts that explain to the receiver's operator why an attempt failed.

use std::io::{self, ErrorKind};

use awc::error::{ConnectError, SendRequestError};
use rustls::CertificateError;

/// Whether the failure happened before anything was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotConnected(pub bool);

/// Describes an answer that is not a success.
pub(super) fn refused(status: u16) -> String {
    match status {
        300..=399 => {
            format!("the receiver answered {status}: redirects are not followed, set the URL it points to")
        }
        _ => format!("the receiver answered {status}"),
    }
}

/// Describes why there was no answer.
pub(super) fn unreachable(error: &SendRequestError) -> (String, NotConnected) {
    let text = match error {
        SendRequestError::Connect(ConnectError::Io(error)) => connecting(error),
        SendRequestError::Connect(ConnectError::Timeout) => {
            String::from("timed out: no connection to the receiver")
        }
        // Between connecting and the head of the answer.
        SendRequestError::Connect(ConnectError::Disconnected) => {
            String::from("the receiver closed the connection without an answer")
        }
        SendRequestError::Send(error) => format!("the connection broke: {error}"),
        SendRequestError::Response(error) => format!("the answer is not HTTP: {error}"),
        error => error.to_string(),
    };
    let not_connected = matches!(
        error,
        SendRequestError::Connect(ConnectError::Io(_) | ConnectError::Timeout)
    );
    (text, NotConnected(not_connected))
}

fn connecting(error: &io::Error) -> String {
    if let Some(error) = error.get_ref().and_then(|inner| inner.downcast_ref()) {
        return match error {
            rustls::Error::InvalidCertificate(error) => {
                format!("the certificate is not valid: {}", certificate(error))
            }
            rustls::Error::AlertReceived(alert) => {
                format!("the receiver refused TLS: {alert:?}")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_before_sending_name_what_to_check() {
        let tls = |error: rustls::Error| io::Error::new(ErrorKind::InvalidData, error);
        let invalid = |error| tls(rustls::Error::InvalidCertificate(error));
        for (error, expected) in [
            (
                io::Error::from(ErrorKind::ConnectionRefused),
                "connection refused",
            ),
            (io::Error::from(ErrorKind::ConnectionReset), "connection reset"),
            (io::Error::from(ErrorKind::TimedOut), "timed out"),
            (io::Error::from(ErrorKind::HostUnreachable), "no route"),
            (io::Error::other("odd"), "no connection to the receiver: odd"),
            (
                io::Error::from(ErrorKind::UnexpectedEof),
                "during the TLS handshake",
            ),
            (
                invalid(CertificateError::Expired),
                "certificate is not valid: it has expired",
            ),
            (
                invalid(CertificateError::NotValidForName),
                "it is for another name",
            ),
            (
                invalid(CertificateError::UnknownIssuer),
                "its issuer is not a public authority",
            ),
            (
                tls(rustls::Error::AlertReceived(
                    rustls::AlertDescription::HandshakeFailure,
                )),
                "HandshakeFailure",
            ),
        ] {
            let (text, not_connected) = unreachable(&SendRequestError::Connect(ConnectError::Io(error)));
            assert!(text.contains(expected), "{text}");
            assert_eq!(not_connected, NotConnected(true));
        }
    }

    #[test]
    fn unsuccessful_responses_are_named_by_status() {
        assert_eq!(refused(503), "the receiver answered 503");
        assert!(refused(302).contains("redirects are not followed"));
    }
}
