use http::{
    HeaderMap, Uri,
    header::{HOST, ORIGIN},
};

use crate::failure::Failure;

/// Refuses what a page of another site makes a browser send: there is no CORS here. A browser that tells no `Origin` (a picture, a script)
/// tells the site in `Sec-Fetch-Site`; a request without either comes from no page. A link may be followed from anywhere.
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
    if uri.authority().is_some_and(|authority| !host.is_some_and(|host| host.eq_ignore_ascii_case(authority.as_str()))) {
        // It names two hosts.
        return Err(bad_host());
    }
    let told = |name: &str| headers.get(name).map(http::HeaderValue::as_bytes);
    let elsewhere = told("sec-fetch-site").is_some_and(|site| !matches!(site, b"same-origin" | b"none"));
    if elsewhere && told("sec-fetch-mode") != Some(b"navigate") {
        return Err(bad_origin());
    }
    let Some(origin) = headers.get(ORIGIN) else { return Ok(()) };
    let same = origin
        .to_str()
        .ok()
        .and_then(|origin| origin.split_once("://"))
        .is_some_and(|(_, authority)| host.is_some_and(|host| host.eq_ignore_ascii_case(authority)));
    if same { Ok(()) } else { Err(bad_origin()) }
}

fn bad_origin() -> Failure {
    Failure::forbidden("request.origin", "requests of other sites' pages are refused")
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

    #[test]
    fn what_a_page_of_another_site_loads_without_an_origin_is_refused_and_a_link_is_followed() {
        let judge = |site: &'static str, mode: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, http::HeaderValue::from_static("127.0.0.1:80"));
            headers.insert("sec-fetch-site", http::HeaderValue::from_static(site));
            headers.insert("sec-fetch-mode", http::HeaderValue::from_static(mode));
            check(&headers, &Uri::from_static("/api"), None).map_err(|failure| failure.code)
        };
        for site in ["cross-site", "same-site"] {
            assert_eq!(judge(site, "no-cors"), Err("request.origin"));
            assert_eq!(judge(site, "navigate"), Ok(()));
        }
        assert_eq!(judge("same-origin", "cors"), Ok(()));
        assert_eq!(judge("none", "no-cors"), Ok(()));
    }

    #[test]
    fn a_request_that_names_two_hosts_is_refused() {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, http::HeaderValue::from_static("127.0.0.1:80"));
        let judge = |uri: &'static str| check(&headers, &Uri::from_static(uri), None).map_err(|failure| failure.code);
        assert_eq!(judge("http://127.0.0.1:80/health"), Ok(()));
        assert_eq!(judge("http://evil.example/health"), Err("request.host"));
    }
}
