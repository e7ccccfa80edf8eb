//! Whichever adapters are built in, each known provider is asked or says which feature it lacks.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use std::sync::Arc;

use ac_core::{ModelErrorKind, ModelId, ModelRequest};
use ac_llm::{
    Router, Transport,
    profile::known,
    request,
    transport::{HttpAnswer, TransportError, TransportErrorKind},
};
use async_trait::async_trait;
use bytes::Bytes;
use secrecy::SecretString;

struct Nowhere;

#[async_trait]
impl Transport for Nowhere {
    async fn send(&self, _request: http::Request<Bytes>) -> Result<HttpAnswer, TransportError> {
        Err(TransportError::new(TransportErrorKind::Connect, "nowhere"))
    }
}

#[test]
fn a_provider_whose_adapter_is_left_out_names_the_feature() {
    let keys = |_: &str, _: &[Arc<str>]| Some(SecretString::from("sk-0123456789"));
    let router = Router::builder(Arc::new(Nowhere)).keys(keys).build();
    for profile in known::all() {
        let model = ModelId::from(format!("{}/some-model", profile.name));
        let built_in = profile.api.is_built_in();
        assert_eq!(router.auth(&profile.name).is_some(), built_in, "{}", profile.name);
        let listed = router.list_models().iter().any(|info| info.provider() == &*profile.name);
        assert!(built_in || !listed, "{} is listed and cannot be asked", profile.name);
        let built = request::build(&profile, &ModelRequest::new(model.clone(), vec![])).map(drop);
        for outcome in [router.resolve(&model).map(drop), built] {
            match outcome {
                Ok(()) => assert!(built_in, "{}", profile.name),
                Err(error) => {
                    assert!(!built_in, "{error}");
                    assert_eq!(error.kind, ModelErrorKind::UnknownProvider);
                    assert!(error.to_string().contains(&format!("feature `{}`", profile.api.feature())), "{error}");
                }
            }
        }
    }
}

/// Port 1 refuses. With encryption the connection fails; without, nothing is tried and the error says what to build with.
#[cfg(feature = "transport-reqwest")]
#[tokio::test]
async fn without_encryption_nothing_is_sent_to_https() {
    let transport = ac_llm::ReqwestTransport::new().unwrap();
    let request = http::Request::get("https://127.0.0.1:1/v1").body(Bytes::new()).unwrap();
    let error = transport.send(request).await.unwrap_err();
    if cfg!(any(feature = "rustls", feature = "native-tls")) {
        assert_eq!(error.kind, TransportErrorKind::Connect, "{error}");
    } else {
        assert_eq!(error.kind, TransportErrorKind::Request, "{error}");
        assert!(error.to_string().contains("`rustls` or `native-tls`"), "{error}");
    }
}
