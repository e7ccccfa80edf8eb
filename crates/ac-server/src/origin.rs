use http::{
    HeaderMap, Uri,
    header::{HOST, ORIGIN},
};

use crate::failure::Failure;

/// Refuses what a page of another site makes a browser send: there is no CORS here. A request without `Origin` comes from no page, or from
/// a page of this server.
pub(crate) fn check(headers: &HeaderMap, uri: &Uri, hosts: Option<&[String]>) -> Result<(), Failure> {
    let mut sent = headers.get_all(HOST).iter();
    let host = match (sent.next(), sent.next()) {
        (None, _) => uri.authority().map(|authority| authority.as_str()),
        (Some(one), None) => Some(one.to_str().map_err(|_| bad_host())?),
        (Some(_), Some(_)) => return Err(bad_host()),
    };
    if let Some(hosts) = hosts {
        // The name may lead here by somebody else's doing (DNS rebinding).
        let name = host.map(without_port).unwrap_or_default();
        if !hosts.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            return Err(bad_host());
        }
    }
    let Some(origin) = headers.get(ORIGIN) else { return Ok(()) };
    let same = origin
        .to_str()
        .ok()
        .and_then(|origin| origin.split_once("://"))
        .is_some_and(|(_, authority)| host.is_some_and(|host| host.eq_ignore_ascii_case(authority)));
    if same { Ok(()) } else { Err(Failure::forbidden("request.origin", "requests of other sites' pages are refused")) }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

fn bad_host() -> Failure {
    Failure::new(http::StatusCode::MISDIRECTED_REQUEST, "request.host", "this server does not answer for that host")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(host: &str, origin: Option<&str>, hosts: Option<&[String]>) -> Result<(), &'static str> {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().unwrap());
        }
        check(&headers, &Uri::from_static("/api"), hosts).map_err(|failure| failure.code)
    }

    #[test]
    fn a_page_of_another_site_is_refused() {
        let local = ["localhost".to_owned(), "127.0.0.1".to_owned(), "[::1]".to_owned()];
        assert_eq!(judge("127.0.0.1:80", None, Some(&local)), Ok(()));
        assert_eq!(judge("[::1]:80", Some("http://[::1]:80"), Some(&local)), Ok(()));
        assert_eq!(judge("evil.example:80", None, Some(&local)), Err("request.host"));
        assert_eq!(judge("evil.example", None, None), Ok(()));
        for origin in ["http://evil.example", "null", "http://127.0.0.1:81", "http://127.0.0.1:80.evil.example"] {
            assert_eq!(judge("127.0.0.1:80", Some(origin), None), Err("request.origin"), "{origin}");
        }
    }
}
